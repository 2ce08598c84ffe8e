package version

import "testing"

func TestCompare(t *testing.T) {
	const unordered = 2
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"v1.2.3", "v1.2.3", 0},
		{"v1.2.3", "v1.10.0", -1},
		{"v1.2.3-rc.1", "v1.2.3", -1},
		{"v1.2.3", "v1.2.3-4-g2469d3f", -1},
		{"v1.2.3-rc.1-9-g2469d3f", "v1.2.3", -1},
		{"v1.2.3-4-g2469d3f", "v1.2.3-10-g1111111-dirty", -1},
		{"v1.2.3-4-g2469d3f", "v1.2.4", -1},
		{"v1.2.3-4-g2469d3f", "v1.2.3-4-g1111111", unordered},
		{"v1.2.3", "v1.2.3-dirty", unordered},
		{"v0.0.0-g2469d3f", "v0.0.0-g2469d3f", 0},
		{"v0.0.0-g2469d3f", "v0.0.0-g1111111", unordered},
		{"v0.0.0-g2469d3f", "v1.2.3", unordered},
		{"v0.0.0-unknown", "v1.2.3", unordered},
		{"dev", "v1.2.3", unordered},
	} {
		order, ok := Compare(tc.a, tc.b)
		if !ok {
			order = unordered
		}
		if order != tc.want {
			t.Errorf("%s and %s: got %d, want %d", tc.a, tc.b, order, tc.want)
		}
		if back, known := Compare(tc.b, tc.a); known != ok || ok && back != -tc.want {
			t.Errorf("%s and %s: got %d, %v", tc.b, tc.a, back, known)
		}
	}
}
