package install

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"akri.sh/akri/e2e/akri"
)

// auditLog is the API server's audit log: one line for each request that has finished.
type auditLog struct{ path string }

// mark returns the current end of the log.
func (l *auditLog) mark() (int64, error) {
	info, err := os.Stat(l.path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// write is a successful request that has changed something.
type write struct {
	Verb string `json:"verb"`
	URI  string `json:"requestURI"`
	User struct {
		Name string `json:"username"`
	} `json:"user"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// byAkri reports whether one of Akri's ServiceAccounts sent the request.
func (w write) byAkri() bool {
	return strings.HasPrefix(w.User.Name, "system:serviceaccount:"+akri.Namespace+":")
}

// String returns the kind of request, such as "patch instances/status".
func (w write) String() string {
	text := w.Verb + " " + w.Object.Resource
	if w.Object.Subresource != "" {
		text += "/" + w.Object.Subresource
	}
	return text
}

// since returns the writes after a mark.
func (l *auditLog) since(mark int64) ([]write, error) {
	file, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(mark, io.SeekStart); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(file)
	var writes []write
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF { // what follows the last newline is still being written
			return writes, nil
		}
		if err != nil {
			return nil, err
		}
		var w write
		if err := json.Unmarshal(line, &w); err != nil {
			return nil, fmt.Errorf("parse a line of the audit log: %w", err)
		}
		switch w.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
			if w.Response.Code < 300 && !strings.Contains(w.URI, "dryRun=") {
				writes = append(writes, w)
			}
		}
	}
}

// tally lists writes by kind, with their number.
func tally(writes []write) string {
	counts := map[string]int{}
	for _, w := range writes {
		counts[w.String()]++
	}
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s %d", kind, counts[kind]))
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
