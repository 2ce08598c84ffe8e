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

func TestStampChangesWithWhatMatters(t *testing.T) {
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
		t.Error("it changes by itself")
	}
	if stampOf(in, "go2") == first {
		t.Error("another Go version makes no difference")
	}
	if stampOf(inputs{dirs: in.dirs, text: []string{"-w"}}, "go1") == first {
		t.Error("other flags make no difference")
	}
	write(t, filepath.Join(dir, "main_test.go"), "package main")
	write(t, filepath.Join(dir, "notes.txt"), "nothing")
	if stampOf(in, "go1") != first {
		t.Error("a file that is not compiled makes a difference")
	}
	write(t, filepath.Join(dir, "main.go"), "package main // changed")
	if stampOf(in, "go1") == first {
		t.Error("a changed source makes no difference")
	}
}

func TestResultThatIsMissingIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	file, result := filepath.Join(dir, "stamp"), filepath.Join(dir, "program")
	s := stamp("x")
	if s.current(file, nil) {
		t.Error("what was never stamped is current")
	}
	if err := s.write(file); err != nil {
		t.Fatal(err)
	}
	write(t, result, "")
	if !s.current(file, []string{result}) {
		t.Error("it is not current")
	}
	if err := os.Remove(result); err != nil {
		t.Fatal(err)
	}
	if s.current(file, []string{result}) || stamp("y").current(file, nil) {
		t.Error("it is current without its result, or with another stamp")
	}
}

func TestCheckNamesWhatIsMissingAndTheRemedy(t *testing.T) {
	err := Check(t.TempDir(), true)
	missing, ok := err.(*MissingError)
	if !ok || len(missing.Files) < 10 {
		t.Fatalf("got %v", err)
	}
}

func TestDirectoryCanBeNamedByTheEnvironment(t *testing.T) {
	t.Setenv(DirVariable, "/somewhere/bin")
	if dir, err := DefaultDir(); err != nil || dir != "/somewhere/bin" {
		t.Errorf("got %s, %v", dir, err)
	}
}

func TestLinesComeOneByOne(t *testing.T) {
	var got []string
	l := lines{each: func(s string) { got = append(got, s) }}
	for _, part := range []string{"a\nb", "c\n", "\n", "d"} {
		l.Write([]byte(part))
	}
	if len(got) != 3 || got[0] != "a" || got[1] != "bc" || got[2] != "" {
		t.Errorf("got %q", got)
	}
}
