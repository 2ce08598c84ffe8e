package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// planted is the beginning of every credential in the tests.
const planted = "PLANTED-"

const object = `
apiVersion: akri.sh/v0
kind: Configuration
metadata:
  name: cam
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"x":"PLANTED-01"}'
    note: see https://user:PLANTED-02@example.com/x
  managedFields: [{manager: PLANTED-03}]
spec:
  capacity: 2
  discoveryHandler:
    name: onvif
    discoveryDetails: |
      url: opc.tcp://bob:PLANTED-04@plc:4840
      password: PLANTED-05
      - apiKey: "PLANTED-06 with spaces"
      ipAddresses: {action: Include}
    discoveryProperties:
    - {name: any, value: PLANTED-07}
    - {name: device_credential, valueFrom: {secretKeyRef: {name: kept-ref, key: kept-key}}}
  brokerProperties: {ROOM: kept-room, CAMERA_PASSWORD: PLANTED-08, RTSP: "rtsp://a:PLANTED-09@10.0.0.5/x"}
  instanceBrokerResources:
  - apiVersion: v1
    kind: Secret
    metadata: {name: kept-secret-name}
    stringData: {anything: PLANTED-10}
  - apiVersion: v1
    kind: Pod
    spec:
      automountServiceAccountToken: false
      containers:
      - args: [--user, kept-user, --password, PLANTED-11, --token=PLANTED-12, "--tls-secret-name", kept-tls]
        env:
        - {name: API_KEY, value: PLANTED-13}
        - {name: LEVEL, value: kept-level}
        - {name: FROM, valueFrom: {secretKeyRef: {name: kept-from, key: k}}}
      volumes: [{name: v, secret: {secretName: kept-volume}}]
    custom: {credentials: {pin: PLANTED-14, list: [PLANTED-15], number: 123456}}
webhooks:
- clientConfig: {caBundle: PLANTED-16, service: {name: kept-service, path: /PLANTED-17}}
`

func TestObject(t *testing.T) {
	var before map[string]any
	if err := yaml.Unmarshal([]byte(object), &before); err != nil {
		t.Fatal(err)
	}
	var r Redactor
	text, err := yaml.Marshal(r.Object(before))
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if strings.Contains(got, planted) || strings.Contains(got, "123456") {
		t.Errorf("a credential is left:\n%s", got)
	}
	for _, kept := range []string{
		"kept-ref", "kept-key", "kept-room", "kept-secret-name", "kept-user", "kept-tls", "kept-level", "kept-from", "kept-volume",
		"kept-service", "capacity: 2", "action: Include", "automountServiceAccountToken: false", "plc:4840", "10.0.0.5/x", "example.com/x",
	} {
		if !strings.Contains(got, kept) {
			t.Errorf("%q is missing in\n%s", kept, got)
		}
	}
	if again, _ := yaml.Marshal(before); !strings.Contains(string(again), planted) {
		t.Error("the original was changed")
	}
}

func TestText(t *testing.T) {
	var r Redactor
	for text, want := range map[string]string{
		`level=warn msg="Cannot connect" password=PLANTED-1 node=n`:                   `level=warn msg="Cannot connect" password=REDACTED node=n`,
		`{"level":"error","token":"PLANTED-1","node":"n"}`:                            `{"level":"error","token":REDACTED,"node":"n"}`,
		`err="dial mqtt://u:PLANTED-1@broker:1883: timeout"`:                          `err="dial mqtt://REDACTED@broker:1883: timeout"`,
		"MQTT_PASS=PLANTED-1 mqttPass=PLANTED-1":                                      "MQTT_PASS=REDACTED mqttPass=REDACTED",
		"http://x/?a=b&pass=PLANTED-1":                                                "http://x/?a=b&pass=REDACTED",
		"psk: PLANTED-1\n  community: PLANTED-1\n  bypass: kept":                      "psk: REDACTED\n  community: REDACTED\n  bypass: kept",
		"Authorization: Bearer PLANTED-12345":                                         "Authorization: REDACTED",
		"got Bearer PLANTED-12345 instead":                                            "got Bearer REDACTED instead",
		"eyJhbGciOiJSUzI1NiJ9.PLANTED-1.x is no token":                                "REDACTED is no token",
		"a -----BEGIN EC PRIVATE KEY-----\nPLANTED-1\n-----END EC PRIVATE KEY----- b": "a REDACTED b",
		"-----BEGIN PRIVATE KEY-----\nPLANTED-1":                                      "REDACTED",
		"cannot read the secret: timeout":                                             "cannot read the secret: timeout",
		`secrets "akri-webhook" is forbidden: User "x" cannot get`:                    `secrets "akri-webhook" is forbidden: User "x" cannot get`,
		"secretName=kept":                                            "secretName=kept",
		"https://example.com/a@b":                                    "https://example.com/a@b",
		`--password='PLANTED 1' --next`:                              `--password=REDACTED --next`,
		`run "login --password PLANTED-1"`:                           `run "login --password REDACTED"`,
		"password=a,PLANTED-1;}] x":                                  "password=REDACTED x",
		`password="a\"PLANTED-1" x=y`:                                `password=REDACTED x=y`,
		`"password="PLANTED-1 and no end`:                            `"password=REDACTED`,
		`passwordFile=PLANTED-1 x`:                                   `passwordFile=REDACTED x`,
		`passwordFile=/run/kept x`:                                   `passwordFile=/run/kept x`,
		`"tokens":["PLANTED-1","PLANTED-2"],"x":1`:                   `"tokens":REDACTED,"x":1`,
		`msg="{\"password\":\"PLANTED-1\",\"x\":1}"`:                 `msg="{\"password\":REDACTED,\"x\":1}"`,
		`"{\\\"password\\\": \\\"PLANTED-1\\\"}"`:                    `"{\\\"password\\\": REDACTED}"`,
		"got Authorization: Basic UExBTlRFRC0x instead":              "got Authorization: Basic REDACTED instead",
		"map[Authorization:[Basic PLANTED-1] Accept:[kept]]":         "map[Authorization:REDACTED Accept:[kept]]",
		"rtsp://u:pa/PLANTED-1?x@10.0.0.5/kept":                      "rtsp://REDACTED@10.0.0.5/kept",
		"https://example.com:443/a@b":                                "https://example.com:443/a@b",
		"with {user: kept, password: two PLANTED-1, x: kept}":        "with {user: kept, password: REDACTED, x: kept}",
		"a\npassword: |-\n  PLANTED-1\n\n  PLANTED-2\nkept: 1\n":     "a\npassword: REDACTED\nkept: 1\n",
		"tokens:\n- PLANTED-1\n- PLANTED-2\n- x: PLANTED-3\nkept: 1": "tokens: REDACTED\nkept: 1",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// unpack returns the files of an archive.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	decompressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(decompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}

func TestArchive(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	write := func() []byte {
		var b Bundle
		// The value is only known to be a credential after the log was added.
		b.AddText([]byte("got PLANTED-1, in base64 "+base64.StdEncoding.EncodeToString([]byte("PLANTED-1"))), "logs", "a/../b", "main.log")
		b.AddObject(map[string]any{"password": "PLANTED-1", "x": "y"}, "akri", "system:name")
		b.Fail("z", errors.New("not permitted: PLANTED-1"))
		b.Fail("a", errors.New("timeout"))
		b.AddText(make([]byte, maxBytes+1), "huge")
		if b.Failures() != 3 {
			t.Errorf("%d failures", b.Failures())
		}
		var out bytes.Buffer
		if err := b.Write(&out, created); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	archive := write()
	if !bytes.Equal(archive, write()) {
		t.Error("two archives of the same content differ")
	}
	files := unpack(t, archive)
	for name, want := range map[string]string{
		"akri-report/logs/a_.._b/main.log":  "got REDACTED, in base64 REDACTED",
		"akri-report/akri/system_name.yaml": "password: REDACTED\nx: \"y\"\n",
		"akri-report/errors.txt": "a: timeout\nhuge: left out, because the report has reached its maximum size\n" +
			"z: not permitted: REDACTED\n",
		"akri-report/README.md": readme,
	} {
		if files[name] != want {
			t.Errorf("%s is %q, want %q", name, files[name], want)
		}
	}
	if len(files) != 4 {
		t.Errorf("%d files", len(files))
	}
}
