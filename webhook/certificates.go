package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Names that config/webhook gives the objects we work with.
const (
	// ServiceName is the Service, in the namespace of the Secret, by which the
	// API server reaches the webhook.
	ServiceName = "akri-webhook"
	// RegistrationName is the ValidatingWebhookConfiguration into which the
	// certificate's authority is written.
	RegistrationName = "akri-configurations"

	certificateFile, keyFile = "tls.crt", "tls.key"
)

// selfManaged has the certificate made, renewed and made known to the API server
// by cert-controller, which keeps it in a Secret. A kubelet would bring it from
// there to our files within a minute or two; we watch the Secret and bring it at
// once, so that neither a start nor a renewal leaves a gap.
func selfManaged(mgr manager.Manager, secret types.NamespacedName, folder string) (*mirror, error) {
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionregistrationv1.AddToScheme} {
		if err := add(mgr.GetScheme()); err != nil {
			return nil, fmt.Errorf("register Secrets and webhooks: %w", err)
		}
	}
	narrow := narrowed{Manager: mgr, config: onlyOurs(mgr.GetConfig(), secret)}
	mirror := &mirror{folder: folder, written: make(chan struct{})}
	if err := mirror.add(narrow, secret); err != nil {
		return nil, err
	}
	host := fmt.Sprintf("%s.%s.svc", ServiceName, secret.Namespace)
	err := rotator.AddRotator(narrow, &rotator.CertRotator{
		SecretKey:      secret,
		CertDir:        folder,
		CAName:         "akri-webhook-ca",
		CAOrganization: "akri.sh",
		DNSName:        host,
		IsReady:        make(chan struct{}), // it looks every few seconds; we know sooner
		FieldOwner:     "akri-webhook",
		Webhooks:       []rotator.WebhookInfo{{Name: RegistrationName, Type: rotator.Validating}},
		// Every replica serves, so every replica must come to have a certificate;
		// the Secret's resourceVersion settles who made it.
		RequireLeaderElection: false,
	})
	if err != nil {
		return nil, fmt.Errorf("have certificates made for the webhook: %w", err)
	}
	return mirror, nil
}

// narrowed gives cert-controller a way to the API server on which it sees our
// Secret and our registration only. It would list all of the namespace's and of
// the cluster's, and we do not want that right.
type narrowed struct {
	manager.Manager
	config *rest.Config
}

func (n narrowed) GetConfig() *rest.Config { return n.config }

func onlyOurs(config *rest.Config, secret types.NamespacedName) *rest.Config {
	narrow := rest.CopyConfig(config)
	narrow.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			name := ""
			switch path := request.URL.Path; {
			case request.Method != http.MethodGet:
			case strings.HasSuffix(path, "/namespaces/"+secret.Namespace+"/secrets"):
				name = secret.Name
			case strings.HasSuffix(path, "/validatingwebhookconfigurations"):
				name = RegistrationName
			}
			if name == "" {
				return next.RoundTrip(request)
			}
			narrower := request.Clone(request.Context())
			query := narrower.URL.Query()
			query.Set("fieldSelector", fields.OneTermEqualSelector("metadata.name", name).String())
			narrower.URL.RawQuery = query.Encode()
			return next.RoundTrip(narrower)
		})
	})
	return narrow
}

// mirror brings the Secret's certificate and key into files whenever they change,
// and knows whether the API server knows their authority.
type mirror struct {
	folder string
	// written is closed, once, when there are files.
	written chan struct{}
	once    sync.Once

	mutex sync.Mutex
	// authority is that of the certificate in the files, known what the
	// registration says.
	authority, known []byte
}

// ready tells whether the API server can be answered by a certificate it trusts.
func (m *mirror) ready() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	switch {
	case len(m.authority) == 0:
		return errors.New("the webhook has no certificate yet")
	case !bytes.Equal(m.authority, m.known):
		return errors.New("the API server does not know the authority of the webhook's certificate yet")
	}
	return nil
}

// add has the Secret and the registration watched.
func (m *mirror) add(mgr manager.Manager, secret types.NamespacedName) error {
	if err := os.MkdirAll(m.folder, 0o700); err != nil {
		return fmt.Errorf("make the folder of the webhook's certificate: %w", err)
	}
	watch, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{secret.Namespace: {}},
	})
	if err != nil {
		return fmt.Errorf("watch Secret %s: %w", secret, err)
	}
	return mgr.Add(everywhere(func(ctx context.Context) error {
		for object, see := range map[client.Object]func(any) error{
			&corev1.Secret{}: m.secret,
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: m.registration,
		} {
			informer, err := watch.GetInformer(ctx, object, cache.BlockUntilSynced(false))
			if err != nil {
				return fmt.Errorf("watch %T for the webhook's certificate: %w", object, err)
			}
			seen := func(object any) {
				if err := see(object); err != nil {
					log.FromContext(ctx).Error(err, "The webhook's certificate cannot be written", "folder", m.folder)
				}
			}
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc:    seen,
				UpdateFunc: func(_, now any) { seen(now) },
			})
			if err != nil {
				return fmt.Errorf("watch %T for the webhook's certificate: %w", object, err)
			}
		}
		return watch.Start(ctx)
	}))
}

// secret writes what the server reads. Each file is replaced as a whole, the key
// first: the server takes a pair that fits and keeps the old one until then.
func (m *mirror) secret(object any) error {
	secret, is := object.(*corev1.Secret)
	if !is || len(secret.Data[certificateFile]) == 0 || len(secret.Data[keyFile]) == 0 {
		return nil // not made yet
	}
	for _, name := range []string{keyFile, certificateFile} {
		file := filepath.Join(m.folder, name)
		if err := os.WriteFile(file+".new", secret.Data[name], 0o600); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.authority = secret.Data["ca.crt"]
	m.once.Do(func() { close(m.written) })
	return nil
}

// registration notes which authority the API server knows.
func (m *mirror) registration(object any) error {
	registration, is := object.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !is || registration.Name != RegistrationName || len(registration.Webhooks) == 0 {
		return nil
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.known = registration.Webhooks[0].ClientConfig.CABundle
	return nil
}

// everywhere runs on every replica, not only on the leader.
type everywhere func(context.Context) error

func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

func (everywhere) NeedLeaderElection() bool { return false }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
