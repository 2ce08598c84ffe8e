package services

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"image/jpeg"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

var hall = Identity{
	Name: "hall <1>", UUID: "5f5a69c2-e0ae-504f-829b-00fcdab169cc", Location: "ground floor", Manufacturer: "Akri",
	Model: "Virtual", Serial: "5f5a69c2", Firmware: "1.0", MAC: "02:00:00:00:00:01", Interface: "eth0", Address: "192.0.2.1", PrefixLength: 24,
}

// security returns a header with a token.
func security(username, password, nonce string, created time.Time) string {
	text := created.Format(time.RFC3339)
	sum := sha1.Sum([]byte(nonce + text + password))
	return fmt.Sprintf(`<w:Security xmlns:w="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd">`+
		`<w:UsernameToken><w:Username>%s</w:Username><w:Password Type="%s">%s</w:Password><w:Nonce>%s</w:Nonce>`+
		`<w:Created>%s</w:Created></w:UsernameToken></w:Security>`,
		username, digestType, base64.StdEncoding.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString([]byte(nonce)), text)
}

// call sends an operation to a handler and returns the answer.
func call(handler http.Handler, path, header, body string) (status int, text string) {
	e := `<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope" xmlns:tds="` + deviceNamespace + `" xmlns:trt="` +
		mediaNamespace + `"><e:Header>` + header + `</e:Header><e:Body>` + body + `</e:Body></e:Envelope>`
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "http://192.0.2.1:8881"+path, strings.NewReader(e)))
	return recorder.Code, recorder.Body.String()
}

func TestOperations(t *testing.T) {
	handler := New(hall, NewUsers("viewer", "secret", func() time.Time { return noon }), func() time.Time { return noon })
	for i, test := range []struct {
		path, body, want string
		open             bool
	}{
		{DevicePath, "<tds:GetSystemDateAndTime/>", "<tt:Hour>12</tt:Hour>", true},
		{DevicePath, "<tds:GetCapabilities/>", "<tt:XAddr>http://192.0.2.1:8881/onvif/media_service</tt:XAddr>", true},
		{DevicePath, "<tds:GetServices/>", "<tds:XAddr>http://192.0.2.1:8881/onvif/device_service</tds:XAddr>", true},
		{DevicePath, "<tds:GetHostname/>", "<tt:Name>hall &lt;1&gt;</tt:Name>", true},
		{DevicePath, "<tds:GetDeviceInformation/>", "<tds:Manufacturer>Akri</tds:Manufacturer>", false},
		{DevicePath, "<tds:GetNetworkInterfaces/>", "<tt:HwAddress>02:00:00:00:00:01</tt:HwAddress>", false},
		{DevicePath, "<tds:GetScopes/>", "onvif://www.onvif.org/name/hall%20%3C1%3E", false},
		{MediaPath, "<trt:GetProfiles/>", `<trt:Profiles token="main"`, false},
		{MediaPath, "<trt:GetSnapshotUri><trt:ProfileToken>main</trt:ProfileToken></trt:GetSnapshotUri>",
			"<tt:Uri>http://192.0.2.1:8881/snapshot.jpg</tt:Uri>", false},
		{MediaPath, "<trt:GetStreamUri><trt:ProfileToken>main</trt:ProfileToken></trt:GetStreamUri>",
			"<tt:Uri>http://192.0.2.1:8881/stream.mjpeg</tt:Uri>", false},
		{MediaPath, "<trt:GetSnapshotUri><trt:ProfileToken>other</trt:ProfileToken></trt:GetSnapshotUri>", "ter:NoProfile", false},
		{DevicePath, "<tds:SystemReboot/>", "ter:ActionNotSupported", true},
		{DevicePath, "<trt:GetProfiles/>", "ter:ActionNotSupported", true},
		{DevicePath, "", "ter:WellFormed", true},
	} {
		_, got := call(handler, test.path, "", test.body)
		if anonymous := strings.Contains(got, test.want); anonymous != test.open {
			t.Errorf("%s without credentials: %s", test.body, got)
		}
		if !test.open && !strings.Contains(got, "ter:NotAuthorized") {
			t.Errorf("%s without credentials: %s", test.body, got)
		}
		token := security("viewer", "secret", fmt.Sprint("nonce", i), noon)
		if _, got := call(handler, test.path, token, test.body); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.body, got, test.want)
		}
	}
}

func TestTokens(t *testing.T) {
	now := noon
	handler := New(hall, NewUsers("viewer", "secret", func() time.Time { return now }), func() time.Time { return now })
	try := func(header string) bool {
		status, _ := call(handler, DevicePath, header, "<tds:GetDeviceInformation/>")
		return status == http.StatusOK
	}
	valid := security("viewer", "secret", "n1", noon)
	for name, test := range map[string]struct {
		header string
		want   bool
	}{
		"a wrong password":             {security("viewer", "Secret", "n2", noon), false},
		"a wrong user":                 {security("admin", "secret", "n3", noon), false},
		"a clock within the window":    {security("viewer", "secret", "n4", noon.Add(-tokenWindow)), true},
		"a time that is too old":       {security("viewer", "secret", "n5", noon.Add(-tokenWindow-time.Second)), false},
		"a time too far in the future": {security("viewer", "secret", "n6", noon.Add(tokenWindow+time.Second)), false},
		"a password in plain text":     {strings.Replace(security("viewer", "secret", "n7", noon), "PasswordDigest", "PasswordText", 1), false},
		"no nonce":                     {security("viewer", "secret", "", noon), false},
	} {
		if got := try(test.header); got != test.want {
			t.Errorf("%s: accepted is %v", name, got)
		}
	}
	if !try(valid) || try(valid) {
		t.Error("a token must be accepted exactly once")
	}
	now = noon.Add(3 * tokenWindow)
	if try(valid) {
		t.Error("a token is accepted again after it was forgotten")
	}
}

func TestPicturesNeedCredentials(t *testing.T) {
	now := noon
	users := NewUsers("viewer", "secret", func() time.Time { return now })
	handler := New(hall, users, func() time.Time { return now })
	get := func(authorization string) *http.Response {
		recorder := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, SnapshotPath, nil)
		request.Header.Set("Authorization", authorization)
		handler.ServeHTTP(recorder, request)
		return recorder.Result()
	}
	challenge := get("").Header.Get("WWW-Authenticate")
	nonce := parseDigest(challenge)["nonce"]
	if nonce == "" {
		t.Fatalf("the challenge is %q", challenge)
	}
	header := func(password, nonce, uri string) string {
		response := hash(hash("viewer:camera:"+password) + ":" + nonce + ":00000001:abc:auth:" + hash("GET:"+uri))
		return fmt.Sprintf(`Digest username="viewer", realm="camera", nonce=%q, uri=%q, qop=auth, nc=00000001, cnonce="abc", response=%q`,
			nonce, uri, response)
	}
	for name, test := range map[string]struct {
		header string
		want   int
	}{
		"the password":      {header("secret", nonce, SnapshotPath), http.StatusOK},
		"a wrong password":  {header("public", nonce, SnapshotPath), http.StatusUnauthorized},
		"an invented nonce": {header("secret", "18b0-00", SnapshotPath), http.StatusUnauthorized},
		"another resource":  {header("secret", nonce, StreamPath), http.StatusUnauthorized},
		"Basic":             {"Basic dmlld2VyOnNlY3JldA==", http.StatusUnauthorized},
		"a broken header":   {`Digest username="viewer`, http.StatusUnauthorized},
	} {
		if got := get(test.header); got.StatusCode != test.want {
			t.Errorf("%s: %d", name, got.StatusCode)
		}
	}
	now = now.Add(nonceLifetime + time.Second)
	if got := get(header("secret", nonce, SnapshotPath)); !strings.Contains(got.Header.Get("WWW-Authenticate"), "stale=true") {
		t.Errorf("an old nonce: %d, %s", got.StatusCode, got.Header)
	}
}

// TestStream reads two pictures of the stream.
func TestStream(t *testing.T) {
	server := httptest.NewServer(New(hall, NewUsers("", "", time.Now), time.Now))
	defer server.Close()
	response, err := server.Client().Get(server.URL + StreamPath)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	var pictures [][]byte
	for reader := multipart.NewReader(response.Body, parameters["boundary"]); len(pictures) < 2; {
		part, err := reader.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		picture, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := jpeg.Decode(bytes.NewReader(picture)); err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, picture)
	}
	if bytes.Equal(pictures[0], pictures[1]) {
		t.Error("the picture does not move")
	}
}
