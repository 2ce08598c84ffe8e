package onvif

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/soap"
)

// FuzzInterview has a camera that gives the same answer to each request. Whatever it is, the
// properties must be clean and bounded, and must not have the password.
func FuzzInterview(f *testing.F) {
	const password = "secret%1"
	var body atomic.Pointer[[]byte]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(*body.Load()) }))
	f.Cleanup(server.Close)
	client := soap.New(soap.Options{})
	settings, err := details.Parse("details: [information, streams]")
	if err != nil {
		f.Fatal(err)
	}
	i := &interviewer{
		client: client, settings: settings, Reporter: silent(func(string) {}),
		credentials: credentialSet{defaultSuffix: {Username: "user", Password: password}},
	}
	media := strings.Replace(server.URL, "127.0.0.1", "HOST", 1)
	for _, content := range []string{
		"<NetworkInterfaces><Info><HwAddress>02:00:00:00:00:01</HwAddress></Info><IPv4><Config><Manual><Address>10.0.0.1</Address>" +
			"</Manual></Config></IPv4></NetworkInterfaces><Model>a\n&#7;b</Model><GUID>urn:uuid:A</GUID>" +
			"<SystemDateAndTime><UTCDateTime><Time><Hour>25</Hour><Minute>0</Minute><Second>0</Second></Time>" +
			"<Date><Year>9999</Year><Month>99</Month><Day>1</Day></Date></UTCDateTime></SystemDateAndTime>",
		"<Capabilities><Media><XAddr>" + media + `</XAddr></Media></Capabilities><Profiles token="&lt;a&gt;"/>` +
			"<MediaUri><Uri>rtsp://user:secret%251@HOST/live?a=1</Uri></MediaUri>",
		"<Capabilities><Media><XAddr>" + media + `</XAddr></Media></Capabilities><Profiles token="a"/>` +
			"<MediaUri><Uri>http://HOST/?p=secret%251</Uri></MediaUri>",
	} {
		f.Add([]byte("<Envelope><Body><Response>" + content + "</Response></Body></Envelope>"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// The address of the server differs from run to run.
		data = []byte(strings.ReplaceAll(string(data), "HOST", "127.0.0.1"))
		body.Store(&data)
		o := i.ask(t.Context(), request{key: key{url: server.URL}})
		if o.uuid != clean(o.uuid) {
			t.Fatalf("the UUID is %q", o.uuid)
		}
		for name, value := range o.facts {
			uri := name == PropertyStreamURI || name == PropertySnapshotURI
			if len(value) > maxPropertyBytes || strings.ContainsAny(value, "\r\n\x00\x7f") || value == "" {
				t.Fatalf("%s is %q", name, value)
			}
			if parsed, err := url.Parse(value); uri && (err != nil || parsed.User != nil || parsed.Hostname() != "127.0.0.1") {
				t.Fatalf("%s is %q", name, value)
			}
			if unescaped, err := url.PathUnescape(value); uri && (err != nil || strings.Contains(unescaped, password)) {
				t.Fatalf("%s is %q", name, value)
			}
		}
	})
}

// TestRequestsOfAllConfigurations has as many requests under way as there may be.
func TestRequestsOfAllConfigurations(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	client := soap.New(soap.Options{})
	i := &interviewer{client: client, settings: &details.Details{}, Reporter: silent(func(string) {})}
	if err := requests.Acquire(t.Context(), maxRequests); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r := request{key: key{url: server.URL}}
	if o := i.perform(ctx, r); o.alive || asked.Load() > 0 {
		t.Errorf("%d requests although there is no place", asked.Load())
	}
	requests.Release(maxRequests)
	if i.perform(t.Context(), r); asked.Load() != 1 {
		t.Errorf("%d requests, want one", asked.Load())
	}
}
