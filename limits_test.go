package akri_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var (
	// limitOfGo and limitOfSchema match the columns "limit" and "set by" of a row.
	limitOfGo     = regexp.MustCompile("(?m)^\\| [^|]+ \\| ([0-9]+(?: [A-Za-z]+)?) \\| `([A-Za-z]+)` in `([^`]+\\.go)` \\|")
	limitOfSchema = regexp.MustCompile("(?m)^\\| [^|]+ \\| ([0-9]+) \\| `([^`]+)` of `([a-zA-Z.]+)` in `([^`]+\\.yaml)` \\|")
	limitRow      = regexp.MustCompile(`(?m)^\| [^|]+ \| [0-9]+[^|]* \|`)
)

// units are the units of the column "limit". Times are in nanoseconds.
var units = map[string]int64{
	"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "ms": 1e6, "s": 1e9, "min": 60e9,
	// of constants
	"time.Second": 1e9, "time.Minute": 60e9, "time.Hour": 3600e9, "time.Millisecond": 1e6,
}

// TestLimits checks that docs/limits.md has the values of the code and of the CRDs.
func TestLimits(t *testing.T) {
	page, err := os.ReadFile("docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	inGo := limitOfGo.FindAllStringSubmatch(string(page), -1)
	inSchema := limitOfSchema.FindAllStringSubmatch(string(page), -1)
	if rows := len(limitRow.FindAllString(string(page), -1)); rows != len(inGo)+len(inSchema) || rows == 0 {
		t.Errorf("docs/limits.md: %d rows have a limit, but only %d name a constant and %d a rule of a CRD", rows, len(inGo), len(inSchema))
	}
	for _, row := range inGo {
		number, unit, _ := strings.Cut(row[1], " ")
		documented, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		value, err := constant(row[3], row[2])
		switch {
		case err != nil:
			t.Errorf("docs/limits.md: %s in %s: %v", row[2], row[3], err)
		case value != documented*units[unit]:
			t.Errorf("docs/limits.md: %s in %s is %d, but the page says %s", row[2], row[3], value, row[1])
		}
	}
	for _, row := range inSchema {
		if err := checkSchemaLimit(row[4], row[3], row[2], row[1]); err != nil {
			t.Errorf("docs/limits.md: %v", err)
		}
	}
}

// TestMemoryOfHandlers checks that the manifests of all handlers set the variable from which
// the memory for their Configurations is derived, as docs/limits.md says.
func TestMemoryOfHandlers(t *testing.T) {
	manifests, err := filepath.Glob("config/*/handler.yaml")
	if err != nil || len(manifests) < 8 {
		t.Fatalf("found %v, %v: want eight or more", manifests, err)
	}
	for _, manifest := range manifests {
		text, err := os.ReadFile(manifest)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "- {name: GOMEMLIMIT, value: ") {
			t.Errorf("%s: it does not set GOMEMLIMIT: add it, below limits.memory", manifest)
		}
	}
}

// constant returns the value of a constant that a package declares, given one of the
// package's files.
func constant(file, name string) (int64, error) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
	if err != nil {
		return 0, err
	}
	declared := map[string]ast.Expr{}
	found := false
	for _, path := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return 0, err
		}
		ast.Inspect(syntax, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, identifier := range spec.Names {
				if i < len(spec.Values) {
					declared[identifier.Name] = spec.Values[i]
					found = found || identifier.Name == name && path == file
				}
			}
			return true
		})
	}
	if !found {
		return 0, errors.New("there is no such constant")
	}
	return evaluate(declared[name], declared)
}

// evaluate returns the value of a constant expression.
func evaluate(expression ast.Expr, declared map[string]ast.Expr) (int64, error) {
	switch expression := expression.(type) {
	case *ast.BasicLit:
		return strconv.ParseInt(strings.ReplaceAll(expression.Value, "_", ""), 0, 64)
	case *ast.ParenExpr:
		return evaluate(expression.X, declared)
	case *ast.Ident:
		if value, ok := declared[expression.Name]; ok {
			return evaluate(value, declared)
		}
	case *ast.SelectorExpr:
		if value, ok := units[fmt.Sprintf("%s.%s", expression.X, expression.Sel.Name)]; ok {
			return value, nil
		}
	case *ast.BinaryExpr:
		x, errX := evaluate(expression.X, declared)
		y, errY := evaluate(expression.Y, declared)
		if err := errors.Join(errX, errY); err != nil {
			return 0, err
		}
		switch expression.Op {
		case token.SHL:
			return x << y, nil
		case token.MUL:
			return x * y, nil
		case token.QUO:
			return x / y, nil
		case token.ADD:
			return x + y, nil
		case token.SUB:
			return x - y, nil
		}
	}
	return 0, errors.New("the test cannot evaluate it: extend evaluate")
}

// checkSchemaLimit compares a limit with a CRD: with a keyword of the schema of a
// field, or with a CEL rule that has the text RULE LIMIT.
func checkSchemaLimit(file, field, rule, limit string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		root := version.Schema.OpenAPIV3Schema
		node := root
		for name := range strings.SplitSeq(field, ".") {
			properties, _ := node["properties"].(map[string]any)
			node, _ = properties[name].(map[string]any)
		}
		if node[rule] != nil && fmt.Sprint(node[rule]) == limit {
			continue
		}
		rules := []any{node["x-kubernetes-validations"]}
		if strings.HasPrefix(field, "metadata.") { // rules about it are at the root
			rules = append(rules, root["x-kubernetes-validations"])
		}
		if !regexp.MustCompile(regexp.QuoteMeta(rule+" "+limit) + `\b`).MatchString(fmt.Sprint(rules...)) {
			return fmt.Errorf("%s: %s of %s is not %s: correct the page", file, rule, field, limit)
		}
	}
	return nil
}
