package templating_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport lists everything that this package and those below it may import:
// nothing that reaches a cluster, a network, a file, the environment or a clock.
var mayImport = map[string][]string{
	".": {
		"errors", "fmt", "maps", "math", "regexp", "slices", "strconv", "strings", "unicode/utf8",
		"akri.sh/akri/api/v0", "akri.sh/akri/internal/finding", "akri.sh/akri/internal/text", "k8s.io/apimachinery/pkg/runtime/schema",
		"akri.sh/akri/templating/readywhen",
		"akri.sh/akri/templating/internal/budget", "akri.sh/akri/templating/internal/expr",
		"akri.sh/akri/templating/internal/fault", "akri.sh/akri/templating/internal/value",
	},
	"internal/fault": {"errors", "fmt", "slices", "strconv", "strings", "akri.sh/akri/internal/text"},
	"internal/value": {
		"cmp", "encoding/json", "errors", "fmt", "maps", "math", "slices",
		"akri.sh/akri/internal/text", "akri.sh/akri/templating/internal/fault",
	},
	"internal/budget": {"errors", "akri.sh/akri/templating/internal/fault", "akri.sh/akri/templating/internal/value"},
	// Sprig can reach all of these, but is called only for functions in the table, of which TestSprig asks the same.
	"internal/functions": {
		"cmp", "crypto/sha256", "encoding/base64", "encoding/hex", "errors", "fmt", "maps", "math",
		"net/netip", "net/url", "reflect", "regexp", "regexp/syntax", "slices", "strconv", "strings", "unicode/utf8",
		"github.com/Masterminds/semver/v3", "github.com/Masterminds/sprig/v3",
		"akri.sh/akri/internal/regexsize",
		"akri.sh/akri/templating/internal/budget", "akri.sh/akri/templating/internal/fault", "akri.sh/akri/templating/internal/value",
	},
	"internal/expr": {
		"errors", "fmt", "regexp", "slices", "sort", "strings", "text/template/parse", "unicode", "unicode/utf8", "akri.sh/akri/internal/text",
		"akri.sh/akri/templating/internal/budget", "akri.sh/akri/templating/internal/fault",
		"akri.sh/akri/templating/internal/functions", "akri.sh/akri/templating/internal/value",
	},
	"convert": {"crypto/sha256", "encoding/hex", "encoding/json", "errors", "fmt", "maps", "strings"},
	"sample":  {"fmt", "maps", "slices", "strings", "akri.sh/akri/api/v0", "akri.sh/akri/templating"},
	"source": {
		"bytes", "encoding/json", "errors", "fmt", "regexp", "slices", "strings", "akri.sh/akri/internal/finding", "akri.sh/akri/templating",
		"k8s.io/apimachinery/pkg/util/json", "sigs.k8s.io/yaml", "sigs.k8s.io/yaml/goyaml.v3",
	},
	"cases": {
		"bytes", "cmp", "encoding/json", "errors", "fmt", "io/fs", "maps", "path", "slices", "strings",
		"go.yaml.in/yaml/v2", "k8s.io/apimachinery/pkg/util/validation",
		"akri.sh/akri/internal/finding", "akri.sh/akri/templating",
		"akri.sh/akri/templating/convert", "akri.sh/akri/templating/sample", "akri.sh/akri/templating/source",
	},
	"readywhen": {
		"errors", "fmt", "strings", "sync", "akri.sh/akri/internal/text",
		"github.com/google/cel-go/cel", "github.com/google/cel-go/common/ast", "github.com/google/cel-go/common/env",
		"github.com/google/cel-go/common/operators", "github.com/google/cel-go/common/overloads",
		"github.com/google/cel-go/common/types", "github.com/google/cel-go/common/types/ref",
	},
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir := "."
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			dir = path[:i]
		}
		allowed, known := mayImport[dir]
		if !known {
			t.Errorf("package %s has no list of imports: add one here", dir)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, s := range file.Imports {
			name, _ := strconv.Unquote(s.Path.Value)
			seen[dir+" "+name] = true
			if !slices.Contains(allowed, name) {
				t.Errorf("%s imports %s: templating stays pure (no client, clock, file, environment or network); "+
					"if this one is harmless, add it here", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, names := range mayImport {
		for _, name := range names {
			if !seen[dir+" "+name] {
				t.Errorf("%s no longer imports %s: remove it here", dir, name)
			}
		}
	}
}
