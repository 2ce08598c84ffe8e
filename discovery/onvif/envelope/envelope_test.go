package envelope

import (
	"encoding/xml"
	"strings"
	"testing"
)

// document has what the documents of this test have.
type document struct {
	XMLName xml.Name
	B       []struct {
		Token string `xml:"token,attr"`
		Text  string `xml:",chardata"`
	} `xml:"b"`
	C string `xml:"c"`
}

func TestDecode(t *testing.T) {
	var got document
	err := Decode([]byte(`<?xml version="1.0" encoding="GB2312"?><!-- c -->
		<a xmlns="urn:1" xmlns:p="urn:2"><p:b token="x">one</p:b><q:b xmlns:p="urn:3" q:token="y">two<i/></q:b><c>&lt;&#65;</c></a>`), &got)
	if err != nil {
		t.Fatal(err)
	}
	if got.XMLName != (xml.Name{Space: "urn:1", Local: "a"}) || got.C != "<A" {
		t.Errorf("got %+v", got)
	}
	if len(got.B) != 2 || got.B[0].Text != "one" || got.B[0].Token != "x" || got.B[1].Text != "two" || got.B[1].Token != "y" {
		t.Errorf("the elements b are %+v", got.B)
	}
	if err := Decode([]byte("\ufeff\n<a><c>x</c></a>\x00\x00"), &got); err != nil || got.C != "x" {
		t.Errorf("with a byte order mark, and zeros at the end: got %q, %v", got.C, err)
	}
	for text, want := range map[string]string{"caf\xe9": "café", "café caf\xe9": "café café", "\xff\x80": "ÿ\u0080"} {
		if err := Decode([]byte("<a><c>"+text+"</c></a>"), &got); err != nil || got.C != want {
			t.Errorf("%q is read as %q, %v, want %q", text, got.C, err, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":         {"", "not valid XML"},
		"an open element": {"<a><b></b>", "not valid XML"},
		"large":           {"<a>" + strings.Repeat("x", MaxBytes) + "</a>", "more than 32768 bytes"},
		"one large tag":   {"<a " + strings.Repeat(`b="" `, MaxBytes/5) + "/>", "more than 32768 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Decode([]byte(tc.text), &document{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that contains %q", err, tc.want)
			}
		})
	}
}

// TestDecodeTolerates checks that documents with mistakes are read, as browsers do, and that
// entities are not expanded.
func TestDecodeTolerates(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"wrong end":       {"<a><c>x</d></c></a>", "x"},
		"deep":            {"<a>" + strings.Repeat("<x>", 4000) + strings.Repeat("</x>", 4000) + "<c>x</c></a>", "x"},
		"entity bomb":     {`<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a><c>&c;</c></a>`, "&c;"},
		"external entity": {`<!DOCTYPE a SYSTEM "file:///etc/passwd"><a><c>&a;</c></a>`, "&a;"},
		"an ampersand":    {"<a><c>north & south</c></a>", "north & south"},
	} {
		t.Run(name, func(t *testing.T) {
			var got document
			if err := Decode([]byte(tc.text), &got); err != nil || got.C != tc.want {
				t.Errorf("got %q, %v, want %q", got.C, err, tc.want)
			}
		})
	}
}

// TestDecodeLarge has a document whose rest is not read.
func TestDecodeLarge(t *testing.T) {
	var got document
	err := Decode([]byte(`<a><b token="x"/>`+strings.Repeat("<d/>", MaxBytes/4)+"</a>"), &got)
	if err == nil || !strings.Contains(err.Error(), "more than") || len(got.B) != 1 || got.B[0].Token != "x" {
		t.Errorf("got %+v, %v, want the first element, and that the document is too large", got, err)
	}
}
