package packages

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestRPM looks for texts in the header of a package, which is not compressed.
func TestRPM(t *testing.T) {
	o := builtOnce(t)
	for name, files := range expected {
		t.Run(name, func(t *testing.T) {
			header, err := os.ReadFile(one(t, o, name+"-*.rpm"))
			if err != nil {
				t.Fatal(err)
			}
			texts := []string{name, "1.2.3+4.g2469d3f", "Apache-2.0", "https://example.com/akri", "/usr/share/zsh/site-functions/", "_" + name}
			for _, file := range files {
				end := strings.LastIndex(file, "/") + 1
				texts = append(texts, file[:end], file[end:])
			}
			for _, want := range texts {
				if !bytes.Contains(header, []byte(want+"\x00")) {
					t.Errorf("%q is missing", want)
				}
			}
		})
	}
}
