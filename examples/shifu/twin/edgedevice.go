package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const (
	accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// maxObjectBytes bounds an object that is read.
	maxObjectBytes = 1 << 20
)

// deviceSpec is the spec of an EdgeDevice, as far as the twin uses it.
type deviceSpec struct {
	Address  string `json:"address"`
	Protocol string `json:"protocol"`
	Settings struct {
		OPCUA struct {
			AuthenticationMode  string `json:"AuthenticationMode"`
			TimeoutMilliseconds int64  `json:"ConnectionTimeoutInMilliseconds"`
		} `json:"OPCUASetting"`
	} `json:"protocolSettings"`
}

// edgeDevice is an EdgeDevice in the API server.
type edgeDevice struct {
	url    string
	client *http.Client
	token  func() (string, error)
}

// inCluster returns an EdgeDevice, with the credentials of the Pod.
func inCluster(namespace, name string) (*edgeDevice, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if namespace == "" || name == "" || host == "" {
		return nil, errors.New("EDGEDEVICE_NAMESPACE, EDGEDEVICE_NAME or KUBERNETES_SERVICE_HOST is not set: run the twin in a pod")
	}
	authority, err := os.ReadFile(filepath.Join(accountDir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("the certificate authority of the cluster has no certificate")
	}
	return &edgeDevice{
		url: fmt.Sprintf("https://%s/apis/shifu.edgenesis.io/v1alpha1/namespaces/%s/edgedevices/%s",
			net.JoinHostPort(host, port), namespace, name),
		client: &http.Client{
			Timeout:   10 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		},
		token: func() (string, error) {
			token, err := os.ReadFile(filepath.Join(accountDir, "token")) // the kubelet renews it
			return string(bytes.TrimSpace(token)), err
		},
	}, nil
}

// spec returns the spec.
func (e *edgeDevice) spec(ctx context.Context) (deviceSpec, error) {
	text, err := e.send(ctx, http.MethodGet, nil)
	if err != nil {
		return deviceSpec{}, err
	}
	var object struct {
		Spec deviceSpec `json:"spec"`
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return deviceSpec{}, fmt.Errorf("parse the EdgeDevice: %w", err)
	}
	if s := object.Spec; s.Protocol != protocolOPCUA && s.Protocol != protocolHTTP || s.Address == "" {
		return deviceSpec{}, fmt.Errorf("the EdgeDevice has the protocol %q and the address %q: want %s and a URL, or %s and HOST:PORT",
			s.Protocol, s.Address, protocolOPCUA, protocolHTTP)
	}
	return object.Spec, nil
}

// setPhase writes the phase as Shifu does: the whole object is read and written, since
// EdgeDevices have no status subresource.
func (e *edgeDevice) setPhase(ctx context.Context, phase string) error {
	text, err := e.send(ctx, http.MethodGet, nil)
	if err != nil {
		return err
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("parse the EdgeDevice: %w", err)
	}
	object["status"] = map[string]any{"edgedevicephase": phase}
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = e.send(ctx, http.MethodPut, body)
	return err
}

func (e *edgeDevice) send(ctx context.Context, method string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	token, err := e.token()
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := e.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxObjectBytes))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s the EdgeDevice: %s: %.200s", method, answer.Status, text)
	}
	return text, nil
}
