package build

import (
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestStampChangesWithTheInputs(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module x")
	write(t, filepath.Join(dir, "main.go"), "package main")
	in := inputs{dirs: []string{dir}, text: []string{"-s -w"}}
	stampOf := func(in inputs, version string) stamp {
		t.Helper()
		s, err := in.stamp(version)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := stampOf(in, "go1")
	if again := stampOf(in, "go1"); again != first {
		t.Error("the same inputs produce a different stamp")
	}
	if stampOf(in, "go2") == first {
		t.Error("the Go version does not change the stamp")
	}
	if stampOf(inputs{dirs: in.dirs, text: []string{"-w"}}, "go1") == first {
		t.Error("the flags do not change the stamp")
	}
	write(t, filepath.Join(dir, "main_test.go"), "package main")
	write(t, filepath.Join(dir, "notes.txt"), "nothing")
	if stampOf(in, "go1") != first {
		t.Error("a file that is not compiled changes the stamp")
	}
	write(t, filepath.Join(dir, "main.go"), "package main // changed")
	if stampOf(in, "go1") == first {
		t.Error("a changed source file does not change the stamp")
	}
}

func TestStampMatchesOnlyExistingResults(t *testing.T) {
	dir := t.TempDir()
	file, result := filepath.Join(dir, "stamp"), filepath.Join(dir, "program")
	s := stamp("x")
	if s.matches(file, nil) {
		t.Error("matches without a stamp file")
	}
	if err := s.write(file); err != nil {
		t.Fatal(err)
	}
	write(t, result, "")
	if !s.matches(file, []string{result}) {
		t.Error("does not match after it was written")
	}
	if err := os.Remove(result); err != nil {
		t.Fatal(err)
	}
	if s.matches(file, []string{result}) || stamp("y").matches(file, nil) {
		t.Error("matches without its result, or matches a different stamp")
	}
}
