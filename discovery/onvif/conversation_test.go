package onvif

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/soap"
)

// script is a camera whose answers are written down: what is in the element of the response, by
// operation. To others it answers with a fault.
type script struct {
	answers map[string]string
	// password is demanded for all operations but the time, with the time of a clock that is
	// ahead.
	password string
	clock    time.Duration
	// except has operations that need no password.
	except []string

	attempts int // that were refused
}

// requestEnvelope is a request to a camera.
type requestEnvelope struct {
	Token usernameToken `xml:"Header>Security>UsernameToken"`
	Body  struct {
		Operation struct{ XMLName xml.Name } `xml:",any"`
	}
}

type usernameToken struct{ Username, Password, Nonce, Created string }

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var call requestEnvelope
	body, _ := io.ReadAll(r.Body)
	_ = xml.Unmarshal(body, &call)
	operation := call.Body.Operation.XMLName
	answer, found := s.answers[operation.Space+" "+operation.Local]
	if !found {
		answer, found = s.answers[operation.Local]
	}
	fault := "ter:ActionNotSupported"
	free := s.password == "" || operation.Local == "GetSystemDateAndTime" || slices.Contains(s.except, operation.Local)
	if !free && !s.admits(call.Token) {
		found, fault = false, "ter:NotAuthorized"
	}
	w.Header()["Date"] = nil
	if !found {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "<Envelope><Body><Fault><Code><Subcode><Value>%s</Value></Subcode></Code></Fault></Body></Envelope>", fault)
		return
	}
	answer = strings.ReplaceAll(answer, "HOST", r.Host)
	fmt.Fprintf(w, "<Envelope><Body><%[1]sResponse>%[2]s</%[1]sResponse></Body></Envelope>", operation.Local, answer)
}

func (s *script) admits(token usernameToken) bool {
	nonce, _ := base64.StdEncoding.DecodeString(token.Nonce)
	created, _ := time.Parse(time.RFC3339, token.Created)
	sum := sha1.Sum([]byte(string(nonce) + token.Created + s.password))
	admitted := token.Password == base64.StdEncoding.EncodeToString(sum[:]) && time.Now().Add(s.clock).Sub(created).Abs() < time.Minute
	if !admitted && token.Username != "" {
		s.attempts++
	}
	return admitted
}

// interview asks a camera, which has announced a UUID, or none if it is listed.
func (s *script) interview(t *testing.T, text, uuid string, reading int) (outcome, map[string]int) {
	t.Helper()
	settings, err := details.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	server := httptest.NewServer(s)
	defer server.Close()
	i := &interviewer{
		client: soap.New(soap.Options{}), settings: settings, Reporter: silent(func(reason string) { counts[reason]++ }),
		credentials: credentialSet{defaultSuffix: {Username: "user", Password: "secret"}},
	}
	return i.ask(t.Context(), request{key: key{url: server.URL + "/onvif/device_service", uuid: uuid}, reading: reading}), counts
}

const (
	hello       = "<SystemDateAndTime/>"
	information = "<Model>M7</Model><SerialNumber>S1</SerialNumber>"
)

// TestListedCameras has cameras that are asked for their UUID.
func TestListedCameras(t *testing.T) {
	answers := map[string]string{"GetSystemDateAndTime": hello, "GetDeviceInformation": information}
	empty := maps.Clone(answers)
	empty["GetEndpointReference"] = "<GUID/>"
	says := maps.Clone(answers)
	says["GetEndpointReference"] = "<GUID>urn:uuid:AB-1</GUID>"
	for name, tc := range map[string]struct {
		camera *script
		own    bool // whether it says its UUID
	}{
		"one that says it":                    {&script{answers: says}, true},
		"one that does not":                   {&script{answers: answers}, false},
		"one that demands credentials":        {&script{answers: says, password: "secret"}, true},
		"one that demands them for the rest":  {&script{answers: says, password: "secret", except: []string{"GetEndpointReference"}}, true},
		"one that says nothing, with demands": {&script{answers: answers, password: "secret"}, false},
		"one with an empty one":               {&script{answers: empty}, false},
	} {
		o, counts := tc.camera.interview(t, "details: [information]", "", 0)
		if !o.alive || o.uuid == "" || (o.uuid == "ab-1") != tc.own || o.facts[PropertyModel] != "M7" || len(counts) > 0 {
			t.Errorf("%s: got %+v, failures %v", name, o, counts)
		}
		if again, _ := tc.camera.interview(t, "", "", 0); tc.own && again.uuid != o.uuid {
			t.Errorf("%s: the UUID is %s, then %s", name, o.uuid, again.uuid)
		}
	}
	wrong := &script{answers: says, password: "another"}
	if o, counts := wrong.interview(t, "", "", 0); !o.alive || o.uuid == "" || wrong.attempts != 1 || counts[failedUnauthorized] != 1 {
		t.Errorf("with wrong credentials: %+v, refused %d times, failures %v", o, wrong.attempts, counts)
	}
}

// TestCredentialsByAnotherClock has cameras that judge by another clock than the one they tell.
func TestCredentialsByAnotherClock(t *testing.T) {
	at := time.Now().UTC().Add(3 * time.Hour)
	ahead := fmt.Sprintf("<SystemDateAndTime><UTCDateTime><Time><Hour>%d</Hour><Minute>%d</Minute><Second>%d</Second></Time>"+
		"<Date><Year>%d</Year><Month>%d</Month><Day>%d</Day></Date></UTCDateTime></SystemDateAndTime>",
		at.Hour(), at.Minute(), at.Second(), at.Year(), at.Month(), at.Day())
	answers := map[string]string{"GetSystemDateAndTime": ahead, "GetNetworkInterfaces": "", "GetDeviceInformation": information}
	for name, tc := range map[string]struct {
		camera           *script
		reading, want    int
		attempts         int
		refused, hasFact bool
	}{
		"the clock that it tells": {&script{answers: answers, password: "secret", clock: 3 * time.Hour}, 0, 0, 0, false, true},
		"the right time":          {&script{answers: answers, password: "secret"}, 0, 1, 1, false, true},
		"the right time, known":   {&script{answers: answers, password: "secret"}, 1, 1, 0, false, true},
		"another time":            {&script{answers: answers, password: "secret", clock: 9 * time.Hour}, 0, 2, 2, true, false},
		"wrong credentials":       {&script{answers: answers, password: "other"}, 0, 2, 2, true, false},
	} {
		o, _ := tc.camera.interview(t, "details: [information]", "u", tc.reading)
		known := o.facts[PropertyModel] == "M7"
		if o.reading != tc.want || tc.camera.attempts != tc.attempts || o.refused != tc.refused || known != tc.hasFact {
			t.Errorf("%s: got %+v, refused %d times", name, o, tc.camera.attempts)
		}
	}
}

// TestStreams has cameras with media services of both versions, at their own address or at
// another one.
func TestStreams(t *testing.T) {
	const media2 = "http://www.onvif.org/ver20/media/wsdl"
	capabilities := func(url string) string {
		return "<Capabilities><Media><XAddr>" + url + "</XAddr></Media></Capabilities>"
	}
	services := func(namespace string) string {
		return "<Service><Namespace>" + namespace + "</Namespace><XAddr> http://HOST/media2 </XAddr></Service>"
	}
	uri := func(stream string) string { return "<MediaUri><Uri>" + stream + "</Uri></MediaUri>" }
	const profile = `<Profiles token="a"/>`
	const networks = "<NetworkInterfaces><IPv4><Config><Manual><Address>10.1.1.1</Address></Manual></Config></IPv4></NetworkInterfaces>"
	for name, tc := range map[string]struct {
		answers          map[string]string
		details          string
		stream, snapshot string
		failures         map[string]int
	}{
		"the first version": {map[string]string{
			"GetCapabilities": capabilities("http://HOST/media"), "GetProfiles": profile, "GetStreamUri": uri("rtsp://127.0.0.1/a"),
			"GetSnapshotUri": uri("http://user:pw@HOST/s.jpg"),
		}, "", "rtsp://127.0.0.1/a", "http://HOST/s.jpg", nil},
		"a path instead of a URL": {map[string]string{
			"GetCapabilities": capabilities("/media"), "GetProfiles": profile, "GetStreamUri": uri("rtsp://127.0.0.1/a"),
		}, "", "rtsp://127.0.0.1/a", "", nil},
		"only the second": {map[string]string{
			"GetCapabilities": "", "GetServices": services(media2), media2 + " GetProfiles": profile,
			media2 + " GetStreamUri": "<Uri>rtsp://127.0.0.1/2</Uri>", media2 + " GetSnapshotUri": "<Uri>http://HOST/2.jpg</Uri>",
		}, "", "rtsp://127.0.0.1/2", "http://HOST/2.jpg", nil},
		"the first without profiles": {map[string]string{
			"GetCapabilities": capabilities("http://HOST/media"), "GetProfiles": "", "GetServices": services(media2),
			media2 + " GetProfiles": profile, media2 + " GetStreamUri": "<Uri>rtsp://127.0.0.1/2</Uri>",
		}, "", "rtsp://127.0.0.1/2", "", nil},
		"no GetCapabilities": {map[string]string{
			"GetServices": services(mediaService), "GetProfiles": profile, "GetStreamUri": uri("rtsp://127.0.0.1/a"),
		}, "", "rtsp://127.0.0.1/a", "", nil},
		"none": {map[string]string{"GetCapabilities": "", "GetServices": ""}, "", "", "", map[string]int{failedStream: 1}},
		"elsewhere": {map[string]string{
			"GetCapabilities": capabilities("http://10.1.1.1/media"), "GetProfiles": profile, "GetStreamUri": uri("rtsp://10.1.1.1/a"),
		}, "", "", "", map[string]int{failedForeign: 1}},
		"elsewhere, allowed": {map[string]string{
			"GetCapabilities": capabilities("http://10.1.1.1/media"), "GetProfiles": profile, "GetStreamUri": uri("rtsp://10.1.1.1:554/a?b=c"),
			"GetSnapshotUri": uri("http://10.1.1.1/s.jpg"),
		}, ", allowForeignXAddrs: true", "rtsp://127.0.0.1:554/a?b=c", "http://HOST/s.jpg", nil},
		"only streams elsewhere, allowed": {map[string]string{
			"GetCapabilities": capabilities("http://HOST/media"), "GetProfiles": profile, "GetStreamUri": uri("rtsp://10.1.1.1/a"),
		}, ", allowForeignXAddrs: true", "rtsp://127.0.0.1/a", "", nil},
		"streams of a server, allowed": {map[string]string{
			"GetCapabilities": capabilities("http://HOST/media"), "GetProfiles": profile, "GetStreamUri": uri("rtsp://10.9.9.9/a"),
		}, ", allowForeignXAddrs: true", "rtsp://10.9.9.9/a", "", nil},
		"a password": {map[string]string{
			"GetCapabilities": capabilities("http://HOST/media"), "GetProfiles": profile, "GetStreamUri": uri("rtsp://127.0.0.1/?pwd=secret"),
		}, "", "", "", map[string]int{failedURI: 1}},
	} {
		tc.answers["GetSystemDateAndTime"], tc.answers["GetNetworkInterfaces"] = hello, networks
		o, counts := (&script{answers: tc.answers}).interview(t, "{details: [streams]"+tc.details+"}", "u", 0)
		stream, snapshot := o.facts[PropertyStreamURI], o.facts[PropertySnapshotURI]
		snapshot = strings.Replace(snapshot, strings.TrimPrefix(strings.TrimSuffix(o.url, "/onvif/device_service"), "http://"), "HOST", 1)
		if stream != tc.stream || snapshot != tc.snapshot || !maps.Equal(counts, tc.failures) {
			t.Errorf("%s: got %q and %q, failures %v; want %q, %q, %v", name, stream, snapshot, counts, tc.stream, tc.snapshot, tc.failures)
		}
	}
}

// TestChooseAddresses has the interfaces of a camera whose URL has 10.0.0.5.
func TestChooseAddresses(t *testing.T) {
	unit := func(mac, address, more string) string {
		return "<NetworkInterfaces>" + more + "<Info><HwAddress>" + mac + "</HwAddress></Info>" +
			"<IPv4><Enabled>true</Enabled><Config><FromDHCP><Address>" + address + "</Address></FromDHCP>" +
			"<DHCP>true</DHCP></Config></IPv4></NetworkInterfaces>"
	}
	loopback, meant := unit("00:00:00:00:00:00", "127.0.0.1", ""), unit(" 02:00:00:00:00:05\n", "10.0.0.5", "")
	other, off := unit("02:00:00:00:00:09", "10.9.9.9", ""), unit("02:00:00:00:00:08", "10.8.8.8", "<Enabled>false</Enabled>")
	for answer, want := range map[string]string{
		meant:                            "10.0.0.5 02:00:00:00:00:05",
		loopback + off + other + meant:   "10.0.0.5 02:00:00:00:00:05",
		meant + other:                    "10.0.0.5 02:00:00:00:00:05",
		loopback + off + other:           "10.9.9.9 02:00:00:00:00:09",
		off:                              " ",
		loopback:                         " ",
		unit("", "10.9.9.9", "") + other: "10.9.9.9 02:00:00:00:00:09",
		unit("", "10.9.9.9", ""):         "10.9.9.9 ",
		unit("00-00-00-00-00-00", "10.0.0.5", "") + other:                                              "10.0.0.5 ",
		"<NetworkInterfaces><Info><HwAddress>02:00:00:00:00:07</HwAddress></Info></NetworkInterfaces>": " 02:00:00:00:00:07",
	} {
		var response soap.Response
		if err := xml.Unmarshal([]byte("<a>"+answer+"</a>"), &response); err != nil {
			t.Fatal(err)
		}
		if ip, mac := chooseAddresses(response.Interfaces, "10.0.0.5"); ip+" "+mac != want {
			t.Errorf("%s: got %q and %q, want %q", answer, ip, mac, want)
		}
	}
}
