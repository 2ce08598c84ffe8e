package handlertest

import (
	"strings"
	"testing"
)

// Details are discoveryDetails, and parts of the error of their validator in their order, separated
// by " … ". Those that are valid have no error.
type Details [2]string

// Validate checks what a validator of discoveryDetails says, each in a subtest. No error may have
// the word secret, which stands for a password.
func Validate(t *testing.T, validate func(text string) error, cases map[string]Details) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { CheckError(t, validate(tc[0]), tc[1]) })
	}
}

// CheckError checks that an error is as [Details] say.
func CheckError(t testing.TB, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted, want an error with %q", want)
	case err != nil:
		rest := err.Error()
		for part := range strings.SplitSeq(want, " … ") {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Fatalf("got %q, want it to contain %q", err, part)
			}
			rest = after
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has a secret: %v", err)
		}
	}
}
