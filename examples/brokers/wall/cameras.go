package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// maxCameras bounds the cameras on a page.
const maxCameras = 200

// camera is a camera on the wall.
type camera struct {
	Name   string
	Broker *url.URL // of its broker's Service
}

// parseCameras reads the list of cameras: NAME=URL, separated by white space. The
// names differ.
func parseCameras(text string) ([]camera, error) {
	cameras := []camera{}
	for word := range strings.FieldsSeq(text) {
		name, address, _ := strings.Cut(word, "=")
		broker, err := url.Parse(address)
		if err != nil || name == "" || strings.Contains(name, "/") || broker.Host == "" || broker.Scheme != "http" {
			return nil, fmt.Errorf("%q is not of the form NAME=http://HOST", word)
		}
		if slices.ContainsFunc(cameras, func(c camera) bool { return c.Name == name }) {
			return nil, fmt.Errorf("%q is listed twice", name)
		}
		cameras = append(cameras, camera{name, broker})
	}
	if len(cameras) > maxCameras {
		return nil, fmt.Errorf("%d cameras are more than fit on a page: at most %d", len(cameras), maxCameras)
	}
	return cameras, nil
}
