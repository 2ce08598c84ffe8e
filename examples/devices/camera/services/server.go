package services

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"net/http"
	"text/template"
	"time"

	"akri.sh/akri/examples/devices/camera/scene"
)

// The paths of a camera.
const (
	DevicePath   = "/onvif/device_service"
	MediaPath    = "/onvif/media_service"
	SnapshotPath = "/snapshot.jpg"
	StreamPath   = "/stream.mjpeg"
)

// The namespaces of the two services.
const (
	deviceNamespace = "http://www.onvif.org/ver10/device/wsdl"
	mediaNamespace  = "http://www.onvif.org/ver10/media/wsdl"
)

// profile is the token of the only media profile.
const profile = "main"

// operation is an operation of a service.
type operation struct {
	namespace string
	open      bool // to clients without credentials, as ONVIF's access class PRE_AUTH
	profiled  bool // the request names a media profile
}

// operations are the implemented ones. The answer is the template of the same name.
var operations = map[string]operation{
	"GetSystemDateAndTime": {namespace: deviceNamespace, open: true},
	"GetCapabilities":      {namespace: deviceNamespace, open: true},
	"GetServices":          {namespace: deviceNamespace, open: true},
	"GetHostname":          {namespace: deviceNamespace, open: true},
	"GetDeviceInformation": {namespace: deviceNamespace},
	"GetNetworkInterfaces": {namespace: deviceNamespace},
	"GetScopes":            {namespace: deviceNamespace},
	"GetProfiles":          {namespace: mediaNamespace},
	"GetSnapshotUri":       {namespace: mediaNamespace, profiled: true},
	"GetStreamUri":         {namespace: mediaNamespace, profiled: true},
}

//go:embed answers.xml.tmpl
var answerText string

var answers = template.Must(template.New("answers").Funcs(template.FuncMap{"xml": escape}).Parse(answerText))

// escape returns a text for use in XML.
func escape(text string) (string, error) {
	var escaped bytes.Buffer
	err := xml.EscapeText(&escaped, []byte(text))
	return escaped.String(), err
}

// answer is the data of the templates.
type answer struct {
	Identity
	Now                                         time.Time
	Profile                                     string
	Width, Height                               int
	DeviceURL, MediaURL, SnapshotURL, StreamURL string
}

// camera serves one camera.
type camera struct {
	identity Identity
	users    *Users
	now      func() time.Time
	scene    *scene.Scene
	viewers  chan struct{} // a slot for each stream
}

// New returns the HTTP handler of a camera.
func New(identity Identity, users *Users, now func() time.Time) http.Handler {
	c := &camera{identity: identity, users: users, now: now, scene: scene.New(identity.Name), viewers: make(chan struct{}, maxViewers)}
	pictures := newDigest(users)
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+DevicePath, func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, deviceNamespace) })
	mux.HandleFunc("POST "+MediaPath, func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, mediaNamespace) })
	mux.HandleFunc("GET "+SnapshotPath, pictures.protect(c.snapshot))
	mux.HandleFunc("GET "+StreamPath, pictures.protect(c.stream))
	return mux
}

// serve answers a SOAP request to the service of a namespace.
func (c *camera) serve(w http.ResponseWriter, r *http.Request, namespace string) {
	request, err := readEnvelope(w, r)
	if err != nil {
		writeFault(w, malformed(err))
		return
	}
	name := request.Body.Request.XMLName
	known, ok := operations[name.Local]
	switch {
	case !ok || name.Space != namespace || known.namespace != namespace:
		writeFault(w, notImplemented)
	case !known.open && !c.users.verify(request.Header.Security.Token):
		writeFault(w, notAuthorized)
	case known.profiled && request.Body.Request.ProfileToken != profile:
		writeFault(w, noProfile)
	default:
		write(w, http.StatusOK, name.Local, c.answer(r.Host))
	}
}

// answer returns the data for a client that reaches the camera at a host.
func (c *camera) answer(host string) answer {
	base := "http://" + host
	return answer{
		Identity:    c.identity,
		Now:         c.now().UTC(),
		Profile:     profile,
		Width:       scene.Width,
		Height:      scene.Height,
		DeviceURL:   base + DevicePath,
		MediaURL:    base + MediaPath,
		SnapshotURL: base + SnapshotPath,
		StreamURL:   base + StreamPath,
	}
}

func writeFault(w http.ResponseWriter, f fault) { write(w, f.status, "Fault", f) }

// write sends the answer of a template.
func write(w http.ResponseWriter, status int, name string, data any) {
	var body bytes.Buffer
	if err := answers.ExecuteTemplate(&body, name, data); err != nil {
		http.Error(w, "render the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/soap+xml; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client may have left
}
