package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	"akri.sh/akri/discovery/web/details"
	"akri.sh/akri/internal/text"
)

// maxIndexItems is how many devices of an index are used: the agent accepts no more.
const maxIndexItems = 1000

// target is a device that may exist.
type target struct {
	id, url    string
	properties map[string]string
}

// bytes returns the memory of the target with its result.
func (t target) bytes() int { return deviceBytes + len(t.id) + len(t.url) + bytesOf(t.properties) }

// targetsOf returns the devices of a Configuration, in order. rejected is the number of
// items of the index that are not devices.
func (s *scanner) targetsOf(ctx context.Context) (targets []target, rejected int, err error) {
	index := s.wanted.Index
	if index == nil {
		for _, address := range s.wanted.URLs {
			targets = append(targets, target{id: address, url: address})
		}
		return targets, 0, nil
	}
	err = s.client.get(ctx, index.URL, func(answer response) error {
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
	if answer.status < http.StatusOK || answer.status >= http.StatusMultipleChoices {
		return nil, 0, fmt.Errorf("%w %d", errStatus, answer.status)
	}
	items, err := itemsOf(index, answer)
	if err != nil {
		return nil, 0, err
	}
	maxBytes := maxPropertiesBytes / max(1, min(len(items), maxIndexItems))
	known := map[string]bool{}
	for _, item := range items {
		t, ok := targetOf(index, item, maxBytes)
		if !ok || known[t.id] || len(targets) == maxIndexItems {
			rejected++
			continue
		}
		known[t.id] = true
		targets = append(targets, t)
	}
	return targets, rejected, nil
}

// itemsOf returns the items of an index: of a JSON list, or the lines of a text.
func itemsOf(index *details.Index, answer response) ([]any, error) {
	trimmed := bytes.TrimSpace(answer.text)
	isJSON := bytes.HasPrefix(trimmed, []byte("[")) || bytes.HasPrefix(trimmed, []byte("{"))
	if !isJSON && index.Items == "" && index.Address == "" {
		if lines := bytes.Count(trimmed, []byte("\n")); lines > maxJSONValues {
			return nil, fmt.Errorf("%w: %d lines", errTooLarge, lines)
		}
		var items []any
		for line := range strings.Lines(string(trimmed)) {
			if line = strings.TrimSpace(line); line != "" {
				items = append(items, strings.Clone(line)) // some are kept without the others
			}
		}
		return items, nil
	}
	document, err := answer.json()
	if err != nil {
		return nil, err
	}
	found, _ := details.Lookup(document, index.Items)
	items, ok := found.([]any)
	if !ok {
		place := index.Items
		if place == "" {
			place = "the response"
		}
		return nil, fmt.Errorf("%w: %s is not a list", errNotJSON, place)
	}
	return items, nil
}

// targetOf returns the device that an item of an index describes.
func targetOf(index *details.Index, item any, maxBytes int) (target, bool) {
	address, ok := details.Scalar(item, index.Address)
	if !ok || details.CheckURL(address) != nil {
		return target{}, false
	}
	t := target{id: address, url: address, properties: map[string]string{}}
	if index.ID != "" {
		if t.id, ok = details.Scalar(item, index.ID); !ok || t.id == "" || len(t.id) > maxIDBytes {
			return target{}, false
		}
	}
	return t, collect(t.properties, index.Properties, item, maxBytes) == nil
}

// Bounds on what becomes a property or an id.
const (
	maxIDBytes    = 1024
	maxValueBytes = 4096
)

// collect adds the properties at paths of a document. What does not exist is left out. The
// error is errTooLarge.
func collect(properties, paths map[string]string, document any, maxBytes int) error {
	for name, path := range paths {
		if value, ok := details.Scalar(document, path); ok {
			properties[name] = text.Truncate(value, maxValueBytes)
			maxBytes -= len(name) + len(properties[name])
		}
	}
	if maxBytes < 0 {
		return fmt.Errorf("%w: its properties", errTooLarge)
	}
	return nil
}
