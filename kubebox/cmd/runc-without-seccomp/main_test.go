package main

import "testing"

func TestUnfilterRemovesOnlyTheFilter(t *testing.T) {
	got, err := unfilter([]byte(`{"process":{"args":["a"]},"linux":{"seccomp":{"defaultAction":"X"},"namespaces":[1]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"linux":{"namespaces":[1]},"process":{"args":["a"]}}`; string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestBundleIsFoundInEveryFlagForm(t *testing.T) {
	for _, args := range [][]string{
		{"runc", "create", "--bundle", "/b", "id"}, {"runc", "create", "-b", "/b"}, {"runc", "create", "--bundle=/b"},
	} {
		if got := bundle(args); got != "/b" {
			t.Errorf("%q: got %s", args, got)
		}
	}
}
