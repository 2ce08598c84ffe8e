package packages

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// archive is a compressed tar file with a program for a platform.
type archive struct {
	platform string // OS/ARCHITECTURE
	name     string // of the file
}

func archiveOf(program, version, platform string) archive {
	return archive{platform, fmt.Sprintf("%s_%s_%s.tar.gz", program, version, strings.ReplaceAll(platform, "/", "_"))}
}

// executable returns the file name of a program.
func executable(program, platform string) string {
	if strings.HasPrefix(platform, "windows/") {
		return program + ".exe"
	}
	return program
}

// writeArchive writes an archive of files, all in one directory.
func (o Options) writeArchive(a archive, contents []content) (err error) {
	file, err := os.Create(filepath.Join(o.Dir, a.name))
	if err != nil {
		return err
	}
	defer func() {
		if closing := file.Close(); err == nil {
			err = closing
		}
	}()
	compressed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	writer := tar.NewWriter(compressed)
	for _, c := range contents {
		if c.format != "" {
			continue // of a package
		}
		data, err := os.ReadFile(c.source)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: path.Base(c.destination), Mode: int64(c.mode), Size: int64(len(data)), ModTime: o.Created.UTC()}
		if err := writer.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", a.name, err)
		}
		if _, err := writer.Write(data); err != nil {
			return fmt.Errorf("write %s: %w", a.name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return fmt.Errorf("write %s: %w", a.name, err)
	}
	return compressed.Close()
}
