package xmltree

import (
	"encoding/xml"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/internal/fulltest"
)

func TestParse(t *testing.T) {
	root, err := Parse([]byte(`<?xml version="1.0" encoding="GB2312"?><!-- c -->
		<a xmlns="urn:1" xmlns:p="urn:2"><p:b token="x">one</p:b><b xmlns:p="urn:3"> p:two q:three four <i/></b><c>&lt;&#65;</c></a>`))
	if err != nil {
		t.Fatal(err)
	}
	if got := (xml.Name{Space: "urn:1", Local: "a"}); root.Name != got {
		t.Errorf("the root is %v, want %v", root.Name, got)
	}
	bs := root.All("b")
	if len(bs) != 2 || bs[0].Name.Space != "urn:2" || bs[0].Text != "one" || bs[0].Attribute("token") != "x" {
		t.Errorf("the elements b are %+v", bs)
	}
	want := []xml.Name{{Space: "urn:3", Local: "two"}, {Space: "q", Local: "three"}, {Space: "urn:1", Local: "four"}}
	if got := bs[1].Names(); !slices.Equal(got, want) {
		t.Errorf("the names are %v, want %v", got, want)
	}
	if got := root.Value("c"); got != "<A" {
		t.Errorf("the text is %q", got)
	}
	if root.Find("b", "none").Find("x").Value("y") != "" || root.Find("none").Attribute("a") != "" {
		t.Error("a missing element has a value")
	}
	if latin, err := Parse([]byte("<a>caf\xe9</a>")); err != nil || latin.Text != "café" {
		t.Errorf("ISO 8859-1 is read as %+v, %v", latin, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":         {"", "no complete element"},
		"an open element": {"<a><b></b>", "no complete element"},
		"wrong end":       {"<a></b>", "unexpected end tag"},
		"two roots":       {"<a/><a/>", "several roots"},
		"deep":            {strings.Repeat("<a>", maxDepth+1), "levels"},
		"attributes":      {"<a" + strings.Repeat(` b="c"`, maxAttributes+1) + "/>", "attributes"},
		"many":            {"<a>" + strings.Repeat("<b/>", maxElements) + "</a>", "elements"},
		"attributes in total": {
			"<a>" + strings.Repeat("<a"+strings.Repeat(` b="c"`, maxAttributes)+"/>", maxTotalAttributes/maxAttributes+1) + "</a>", "in total",
		},
		"namespaces":      {strings.Repeat("<a"+strings.Repeat(` xmlns:b="c"`, maxAttributes)+">", maxNamespaces/maxAttributes+1), "namespaces"},
		"entity bomb":     {`<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a>&c;</a>`, "document type"},
		"external entity": {`<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>`, "document type"},
		"unknown entity":  {"<a>&c;</a>", "not valid XML"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that contains %q", err, tc.want)
			}
		})
	}
}

// TestCost bounds the work for names: an attacker can have each one looked up in everything
// that its parents declare.
func TestCost(t *testing.T) {
	fulltest.Only(t)
	const levels = maxDepth - 2
	filler := strings.Repeat(` b=""`, maxAttributes-maxNamespaces/levels-1)
	document := func(attribute string) []byte {
		return []byte(strings.Repeat("<a"+strings.Repeat(attribute, maxNamespaces/levels)+filler+">", levels) +
			strings.Repeat("<p:b/>", maxElements-levels) + strings.Repeat("</a>", levels))
	}
	fastest := func(text []byte) time.Duration {
		best := time.Hour
		for range 10 {
			began := time.Now()
			if _, err := Parse(text); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	plain, hostile := fastest(document(` xmlnx:x="y"`)), fastest(document(` xmlns:x="y"`))
	t.Logf("measured: %v, and without namespaces %v", hostile, plain)
	if hostile > 3*plain {
		t.Errorf("%v with namespaces, %v without", hostile, plain)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`<a xmlns:p="urn:2"><p:b c="d">p:e</p:b></a>`))
	f.Add([]byte(`<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>`))
	f.Add([]byte("<a>\xff</a>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := Parse(data)
		if err != nil {
			return
		}
		var count int
		var walk func(e *Element, depth int)
		walk = func(e *Element, depth int) {
			count++
			if depth > maxDepth || count > maxElements {
				t.Fatalf("more than the bounds: depth %d, %d elements", depth, count)
			}
			_ = e.Names()
			for _, child := range e.Children {
				walk(child, depth+1)
			}
		}
		walk(root, 1)
	})
}
