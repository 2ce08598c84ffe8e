package clustertest_test

import (
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

func TestFull(t *testing.T) {
	for value, want := range map[string]bool{"": false, "1": true} {
		ran := false
		t.Run("with the value "+value, func(t *testing.T) {
			t.Setenv(clustertest.FullVariable, value)
			clustertest.Full(t)
			ran = true
		})
		if ran != want {
			t.Errorf("%s=%q: the test ran: %v, want %v", clustertest.FullVariable, value, ran, want)
		}
	}
}

func TestSoak(t *testing.T) {
	cases := map[string]struct {
		soak, seed string
		length     time.Duration
		want       uint64
		failure    string
	}{
		"outside of make soak": {length: time.Second, want: 1},
		"make soak":            {soak: "30m", seed: "7", length: 30 * time.Minute, want: 7},
		"a seed to repeat":     {seed: "18446744073709551615", length: time.Second, want: 18446744073709551615},
		"no duration":          {soak: "30", failure: `AKRI_SOAK="30": want a duration such as 30m`},
		"no time":              {soak: "-1s", failure: `AKRI_SOAK="-1s": want a duration such as 30m`},
		"no number":            {seed: "x", failure: `AKRI_SEED="x": want a number`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(clustertest.SoakVariable, tc.soak)
			t.Setenv(clustertest.SeedVariable, tc.seed)
			r := &recorder{TB: t}
			defer func() {
				if p := recover(); p != nil && p != r {
					panic(p)
				}
				if r.failure != tc.failure {
					t.Errorf("the failure is %q, want %q", r.failure, tc.failure)
				}
			}()
			length, seed := clustertest.Soak(r, time.Second)
			if length != tc.length || seed != tc.want {
				t.Errorf("%v with the seed %d, want %v with the seed %d", length, seed, tc.length, tc.want)
			}
		})
	}
}
