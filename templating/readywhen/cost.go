package readywhen

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types/ref"
)

const (
	// maxCost bounds one evaluation, in CEL's units: a field or a comparison of two
	// numbers is about one.
	maxCost = 20_000
	// bytesPerUnit is how much text is read for one unit, as CEL counts it.
	bytesPerUnit = 10
)

// costs counts the calls whose work grows with the object: CEL counts the comparison
// of two large maps as one.
type costs struct{}

// CallCost implements interpreter.ActualCostEstimator. It returns nil for calls that
// CEL counts itself.
func (costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	var cost uint64
	switch function {
	case operators.Equals, operators.NotEquals:
		cost = min(work(args[0], 0), work(args[1], 0))
	case operators.In:
		cost = work(args[1], 0)
	case overloads.Size:
		cost = textWork(args[0])
	default:
		return nil
	}
	return &cost
}

// textWork returns what it costs to count the characters of a text.
func textWork(value ref.Val) uint64 {
	text, ok := value.Value().(string)
	if !ok {
		return 1
	}
	return 1 + uint64(len(text)/bytesPerUnit)
}

// work returns what it costs to read a whole value, in addition to what was counted.
// It stops above the limit of an evaluation.
func work(value any, counted uint64) uint64 {
	if counted++; counted > maxCost {
		return counted
	}
	switch value := value.(type) {
	case string:
		counted += uint64(len(value) / bytesPerUnit)
	case []any:
		for _, item := range value {
			counted = work(item, counted)
		}
	case map[string]any:
		for _, item := range value {
			counted = work(item, counted)
		}
	case []ref.Val:
		for _, item := range value {
			counted = work(item, counted)
		}
	case map[ref.Val]ref.Val:
		for key, item := range value {
			counted = work(item, work(key, counted))
		}
	case ref.Val:
		switch inner := value.Value().(type) {
		case string, []any, map[string]any, []ref.Val, map[ref.Val]ref.Val:
			counted = work(inner, counted)
		}
	}
	return counted
}
