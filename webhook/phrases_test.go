package webhook

import (
	"regexp"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The API server says what phrases.go expects. If a newer version does not, add its words there.
func TestPhrases(t *testing.T) {
	w := newWorld(t)
	pod := func(spec string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {` + spec + `}}`
	}
	service := func(port string) string {
		return `{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{` + port + `}]}}`
	}
	configMap := func(metadata, data string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {` + metadata + `}, data: {` + data + `}}`
	}
	literally := func(phrase string) *regexp.Regexp { return regexp.MustCompile(regexp.QuoteMeta(phrase)) }
	const container = `{name: a, image: a}`
	provoked := map[string]bool{}
	for _, tc := range []struct {
		object string
		says   *regexp.Regexp
		field  string // that phraseMistypedField finds
		what   string // what it says about the field
	}{
		{service(`port: x`), phraseMistyped, `.spec.ports[port="x",protocol="TCP"].port`, "expected numeric"},
		{service(`port: 1, appProtocol: 1`), phraseMistyped, `.spec.ports[port=1,protocol="TCP"].appProtocol`, "expected string"},
		{pod(`hostNetwork: x`), phraseMistyped, ".spec.hostNetwork", "expected boolean"},
		{pod(`containers: x`), phraseMistyped, ".spec.containers", "expected list"},
		{pod(`securityContext: x`), phraseMistyped, ".spec.securityContext", "expected map"},
		{pod(`image: x`), phraseMistyped, ".spec.image", phraseUndeclared},
		{pod(`containers: [` + container + `, ` + container + `]`), literally(phraseDuplicate), ".spec.containers", ""},
		{pod(`containers: [{name: a, image: a, resources: {limits: {memory: x}}}]`), phraseUnconverted, "", ""},
		{service(`port: 80, targetPort: "8080"`), literally(phraseNoLetter), "", ""},
		{configMap(`name: x, labels: {a: a b}`, ""), literally(phraseLabel), "", ""},
		{configMap(`name: x`, "a b: v"), literally(phraseKey), "", ""},
		{configMap(`name: a_b`, ""), literally(phraseName), "", ""},
	} {
		object := decode(t, tc.object)
		kind := object.GroupVersionKind()
		mapping, err := w.options.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.as("").api.Resource(mapping.Resource).Namespace(w.Namespace).Apply(t.Context(), object.GetName(), object,
			metav1.ApplyOptions{FieldManager: "test", DryRun: []string{metav1.DryRunAll}})
		if err == nil || !tc.says.MatchString(err.Error()) {
			t.Errorf("%s: the API server says %v, want %s", tc.object, err, tc.says)
			continue
		}
		found := phraseMistypedField.FindStringSubmatch(err.Error())
		if tc.field != "" && (found == nil || found[1] != tc.field || tc.what != "" && found[2] != tc.what) {
			t.Errorf("%s: the API server says %v, and found are %q, want %s: %s", tc.object, err, found, tc.field, tc.what)
		}
		provoked[tc.what] = true
	}
	for phrase := range phraseTypes {
		if !provoked[phrase] {
			t.Errorf("%q is not provoked", phrase)
		}
	}
	expect(t, w.impersonate(), phraseNoImpersonation)
	// No webhook can be registered any more that does not support dry runs.
	expect(t, webhookerrors.NewDryRunUnsupportedErr("x"), phraseNoDryRun)
}

// impersonate returns what the API server says to a ServiceAccount that may not impersonate.
func (w *world) impersonate() error {
	w.Helper()
	accounts := w.kubernetes().CoreV1().ServiceAccounts(w.Namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	if _, err := accounts.Create(w.Context(), account, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	token, err := accounts.CreateToken(w.Context(), "x", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	config := rest.AnonymousClientConfig(w.Config)
	config.BearerToken = token.Status.Token
	config.Impersonate.UserName = webhookAccount
	_, err = kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(w.Namespace).List(w.Context(), metav1.ListOptions{})
	return err
}
