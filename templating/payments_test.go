package templating_test

import (
	"errors"
	"testing"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/internal/budget"
)

// What a budget has before anything is paid.
const (
	stepsOfTemplate  = 1_000_000
	memoryOfTemplate = 8 << 20 // of one object
)

// TestFunctionsPay checks for each function that its example fails with any budget that is
// smaller than what it pays: no payment that is refused is ignored.
func TestFunctionsPay(t *testing.T) {
	for _, f := range allFunctions() {
		if f.Name == "and" || f.Name == "or" || f.Name == "fail" {
			continue // they are never called, or never succeed
		}
		var args []any
		for _, arg := range exampleArguments(t, f) {
			v, diags := evaluate(t, "{{ "+arg+" }}")
			if err := diags.Err(); err != nil {
				t.Fatal(err)
			}
			args = append(args, v)
		}
		call := func(b *budget.Budget) error {
			_, err := f.Call(b, args)
			return err
		}
		list := budget.NewList()
		list.Run(func(b *budget.Budget) {
			if err := call(b); err != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
		})
		steps, bytes := list.Spent()
		checkPayments(t, f.Name+" in steps", steps, stepsOfTemplate, (*budget.Budget).Step, call)
		checkPayments(t, f.Name+" in bytes", bytes, memoryOfTemplate, (*budget.Budget).Allocate, call)
	}
}

// checkPayments checks that do succeeds with just what it pays, and with nothing less.
func checkPayments(
	t *testing.T, name string, paid, all int64, spend func(*budget.Budget, int64) error, do func(*budget.Budget) error,
) {
	t.Helper()
	for left := range paid + 1 {
		b := budget.New()
		if err := spend(b, all-left); err != nil {
			t.Fatal(err)
		}
		err := do(b)
		if left < paid && !errors.Is(err, templating.ErrLimit) {
			t.Errorf("%s: pays %d but succeeds with %d: %v", name, paid, left, err)
			return
		}
		if left == paid && err != nil {
			t.Errorf("%s: pays %d and fails with it: %v", name, paid, err)
		}
	}
}

// TestObjectsPay is TestFunctionsPay for all parts of an object.
func TestObjectsPay(t *testing.T) {
	template := one(map[string]any{
		"literal": "x", "number": 1, "list": []any{"a", 2, "{{ NODES }}"}, "{{ INSTANCE_NAME }}": "{{ CAPACITY }}",
		"map": `{{ dict "a" (list 1 1.5 "b" true) "b" INSTANCE_PROPERTIES }}`,
		"text": `a {{ if or false (and SHARED true) }}b{{ else }}{{ with NODES }}{{ len . }}{{ end }}{{ end }} {{ 0.5 }}` +
			`{{ range $i, $n := NODES }}{{ $i }}{{ end }}`,
		"long": `{{ range 3 }}{{ INSTANCE_PROPERTIES.MODEL | repeat 100 }}{{ end }}`,
	}, map[string]any{"akri.sh/when": "{{ gt CAPACITY 1 }}"})
	set := mustCompile(t, templating.InstanceLevel, []map[string]any{template})
	_, diags, steps, bytes := set.RenderCounting(camera)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	check := func(what string, leftSteps, leftBytes int64, enough bool) {
		objects, diags := set.RenderWithin(camera, leftSteps, leftBytes)
		limited := errors.Is(diags.Err(), templating.ErrLimit)
		if enough && (len(objects) != 1 || len(diags) > 0) || !enough && (len(objects) > 0 || !limited) {
			t.Errorf("with %d steps and %d bytes (%s): %d objects, %v", leftSteps, leftBytes, what, len(objects), diags)
		}
	}
	for left := range steps {
		check("too few steps", left, memoryOfTemplate, false)
	}
	for left := int64(0); left < bytes; left += 7 {
		check("too little memory", stepsOfTemplate, left, false)
	}
	check("just enough", steps, bytes, true)
}
