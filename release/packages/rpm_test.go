package packages

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"
)

// Tags of an RPM header.
const (
	tagName       = 1000
	tagVersion    = 1001
	tagRelease    = 1002
	tagBuildHost  = 1007
	tagVendor     = 1011
	tagLicense    = 1014
	tagURL        = 1020
	tagPreInstall = 1023
	tagPostInst   = 1024
	tagDirIndexes = 1116
	tagBaseNames  = 1117
	tagDirNames   = 1118
)

// rpmEntry is an entry in the index of an RPM header.
type rpmEntry struct{ Tag, Kind, Offset, Count uint32 }

// rpmHeader is the header of an RPM package: its index and the data that it refers to.
type rpmHeader struct {
	entries []rpmEntry
	data    []byte
}

// readRPM reads the header of a package: after 96 bytes and the signature, which has the
// same format and is padded to 8 bytes.
func readRPM(t *testing.T, file string) rpmHeader {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const lead = 96
	_, size := readHeader(t, text[lead:])
	header, _ := readHeader(t, text[lead+(size+7)/8*8:])
	return header
}

func readHeader(t *testing.T, text []byte) (header rpmHeader, size int) {
	t.Helper()
	const start, perEntry = 16, 16
	if !bytes.HasPrefix(text, []byte{0x8e, 0xad, 0xe8, 0x01}) {
		t.Fatalf("no header: % x", text[:8])
	}
	count, length := int(binary.BigEndian.Uint32(text[8:])), int(binary.BigEndian.Uint32(text[12:]))
	header.entries = make([]rpmEntry, count)
	if err := binary.Read(bytes.NewReader(text[start:]), binary.BigEndian, header.entries); err != nil {
		t.Fatal(err)
	}
	size = start + count*perEntry + length
	header.data = text[start+count*perEntry : size]
	return header, size
}

// texts returns the texts of a tag, and numbers its numbers; both are empty without it.
func (h rpmHeader) texts(tag uint32) (all []string) {
	entry, data := h.entry(tag)
	for range entry.Count {
		text, rest, _ := bytes.Cut(data, []byte{0})
		all, data = append(all, string(text)), rest
	}
	return all
}

func (h rpmHeader) numbers(tag uint32) (all []uint32) {
	entry, data := h.entry(tag)
	for i := range entry.Count {
		all = append(all, binary.BigEndian.Uint32(data[4*i:]))
	}
	return all
}

func (h rpmHeader) entry(tag uint32) (rpmEntry, []byte) {
	for _, entry := range h.entries {
		if entry.Tag == tag {
			return entry, h.data[entry.Offset:]
		}
	}
	return rpmEntry{}, nil
}

func (h rpmHeader) paths() (all []string) {
	dirs, indexes := h.texts(tagDirNames), h.numbers(tagDirIndexes)
	for i, name := range h.texts(tagBaseNames) {
		all = append(all, dirs[indexes[i]]+name)
	}
	return all
}

func TestRPM(t *testing.T) {
	o := builtOnce(t)
	for name, files := range expected {
		t.Run(name, func(t *testing.T) {
			header := readRPM(t, one(t, o, name+"-*.rpm"))
			for tag, want := range map[uint32]string{
				tagName: name, tagVersion: "1.2.3+4.g2469d3f", tagRelease: "1", tagLicense: "Apache-2.0", tagBuildHost: "akri.sh",
				tagVendor: "Akri", tagURL: "https://example.com/akri",
			} {
				if got := header.texts(tag); !slices.Equal(got, []string{want}) {
					t.Errorf("tag %d is %q, want %q", tag, got, want)
				}
			}
			if header.texts(tagPreInstall) != nil || header.texts(tagPostInst) != nil {
				t.Error("the package has scripts")
			}
			paths := header.paths()
			for _, want := range append(slices.Clone(files), "/usr/share/zsh/site-functions/_"+name) {
				if !slices.Contains(paths, want) {
					t.Errorf("%s is missing in %v", want, paths)
				}
			}
		})
	}
}
