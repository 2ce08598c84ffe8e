package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLongStepsReportThatTheyRun(t *testing.T) {
	var output strings.Builder
	defer func(before io.Writer) { progress = before }(progress)
	progress = &output
	failure := errors.New("no space")
	synctest.Test(t, func(t *testing.T) {
		got := during("building helm", func() error {
			time.Sleep(25 * time.Second)
			return failure
		})
		if !errors.Is(got, failure) {
			t.Errorf("the error is %v, want that of the step", got)
		}
		time.Sleep(time.Minute) // nothing more is written
	})
	const want = "demo: building helm\ndemo: building helm: 10s\ndemo: building helm: 20s\n"
	if got := output.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
