package web

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"

	"akri.sh/akri/discovery/internal/jsonvalue"
	"akri.sh/akri/discovery/web/details"
	"akri.sh/akri/internal/text"
)

// maxIndexItems is how many devices of an index are used: the agent accepts no more.
const maxIndexItems = 1000

// target is a device that may exist.
type target struct {
	id, url    string
	properties map[string]string // of the index, and then of the response
	err        error             // of the request
}

// targetsOf returns the devices of a Configuration, in order. rejected is the number of
// items of the index that are not devices.
func (s *scanner) targetsOf(ctx context.Context) (targets []target, rejected int, err error) {
	index := s.wanted.Index
	if index == nil {
		for _, address := range s.wanted.URLs {
			targets = append(targets, target{id: address, url: address, properties: map[string]string{}})
		}
		return targets, 0, nil
	}
	err = s.client.get(ctx, index.URL, indexKind, func(answer response) error {
		if answer.status < http.StatusOK || answer.status >= http.StatusMultipleChoices {
			return fmt.Errorf("%w %d", errStatus, answer.status)
		}
		targets, rejected, err = targetsIn(index, answer)
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("index %s: %w", index.URL, err)
	}
	return targets, rejected, nil
}

// targetsIn returns the devices that an index lists.
func targetsIn(index *details.Index, answer response) (targets []target, rejected int, err error) {
	known, maxBytes := map[string]bool{}, 0
	add := func(item gjson.Result) {
		t, ok := targetOf(index, item, maxBytes)
		if !ok || known[t.id] || len(targets) == maxIndexItems {
			rejected++
			return
		}
		known[t.id] = true
		targets = append(targets, t)
	}
	trimmed := bytes.TrimSpace(answer.body)
	isJSON := bytes.HasPrefix(trimmed, []byte("[")) || bytes.HasPrefix(trimmed, []byte("{"))
	if !isJSON && index.Items == "" && index.Address == "" {
		if err := answer.whole(); err != nil {
			return nil, 0, err
		}
		for line := range bytes.Lines(trimmed) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				add(gjson.Result{Type: gjson.String, Str: string(line)})
			}
		}
		return targets, rejected, nil
	}
	document, err := answer.json()
	if err != nil {
		return nil, 0, err
	}
	items := jsonvalue.Lookup(document, index.Items)
	if !items.IsArray() {
		return nil, 0, fmt.Errorf("%w: %s is not a list", errNotJSON, cmp.Or(index.Items, "the response"))
	}
	maxBytes = maxPropertiesBytes / int(max(1, min(items.Get("#").Int(), maxIndexItems)))
	items.ForEach(func(_, item gjson.Result) bool {
		add(item)
		return true
	})
	return targets, rejected, nil
}

// targetOf returns the device that an item of an index describes.
func targetOf(index *details.Index, item gjson.Result, maxBytes int) (target, bool) {
	address, ok := jsonvalue.Text(jsonvalue.Lookup(item, index.Address))
	if !ok || details.CheckURL(address) != nil {
		return target{}, false
	}
	t := target{id: address, url: address}
	if index.ID != "" {
		if t.id, ok = jsonvalue.Text(item.Get(index.ID)); !ok || t.id == "" || len(t.id) > maxIDBytes {
			return target{}, false
		}
	}
	var err error
	t.properties, err = propertiesAt(index.Properties, item, maxBytes)
	return t, err == nil
}

// Bounds on what becomes a property or an id.
const (
	maxIDBytes    = 1024
	maxValueBytes = 4096
	// maxPropertiesBytes bounds the names and values of the properties of a Configuration's
	// devices. Each device may have an equal part.
	maxPropertiesBytes = 2 << 20
)

// propertiesAt returns the properties at paths of a document. What does not exist is left
// out. The error is errTooLarge.
func propertiesAt(paths map[string]string, document gjson.Result, maxBytes int) (map[string]string, error) {
	properties := map[string]string{}
	for name, path := range paths {
		if value, ok := jsonvalue.Text(document.Get(path)); ok {
			properties[name] = text.Truncate(value, maxValueBytes)
			maxBytes -= len(name) + len(properties[name])
		}
	}
	if maxBytes < 0 {
		return nil, fmt.Errorf("%w: its properties", errTooLarge)
	}
	return properties, nil
}
