package webhook

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
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
func selfManaged(mgr manager.Manager, secret types.NamespacedName, folder string) (ready <-chan struct{}, err error) {
	if err := corev1.AddToScheme(mgr.GetScheme()); err != nil {
		return nil, fmt.Errorf("register Secrets: %w", err)
	}
	narrow := narrowed{Manager: mgr, config: onlyOurs(mgr.GetConfig(), secret)}
	if err := addMirror(narrow, secret, folder); err != nil {
		return nil, err
	}
	injected := make(chan struct{})
	host := fmt.Sprintf("%s.%s.svc", ServiceName, secret.Namespace)
	err = rotator.AddRotator(narrow, &rotator.CertRotator{
		SecretKey:      secret,
		CertDir:        folder,
		CAName:         "akri-webhook-ca",
		CAOrganization: "akri.sh",
		DNSName:        host,
		IsReady:        injected,
		FieldOwner:     "akri-webhook",
		Webhooks:       []rotator.WebhookInfo{{Name: RegistrationName, Type: rotator.Validating}},
		// Every replica serves, so every replica must come to have a certificate;
		// the Secret's resourceVersion settles who made it.
		RequireLeaderElection: false,
	})
	if err != nil {
		return nil, fmt.Errorf("have certificates made for the webhook: %w", err)
	}
	return injected, nil
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

// addMirror writes the Secret's certificate and key into files whenever they
// change.
func addMirror(mgr manager.Manager, secret types.NamespacedName, folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make the folder of the webhook's certificate: %w", err)
	}
	watch, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: nil,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{secret.Namespace: {}},
				Field:      fields.OneTermEqualSelector("metadata.name", secret.Name),
			},
		},
	})
	if err != nil {
		return fmt.Errorf("watch Secret %s: %w", secret, err)
	}
	return mgr.Add(everywhere(func(ctx context.Context) error {
		informer, err := watch.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch Secret %s: %w", secret, err)
		}
		write := func(object any) {
			if found, is := object.(*corev1.Secret); is {
				if err := mirror(found.Data, folder); err != nil {
					log.FromContext(ctx).Error(err, "The webhook's certificate cannot be written", "folder", folder)
				}
			}
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    write,
			UpdateFunc: func(_, now any) { write(now) },
		})
		if err != nil {
			return fmt.Errorf("watch Secret %s: %w", secret, err)
		}
		return watch.Start(ctx)
	}))
}

// mirror writes what the server reads. Each file is replaced as a whole, the key
// first: the server takes a pair that fits and keeps the old one until then.
func mirror(data map[string][]byte, folder string) error {
	if len(data[certificateFile]) == 0 || len(data[keyFile]) == 0 {
		return nil // not made yet
	}
	for _, name := range []string{keyFile, certificateFile} {
		written := filepath.Join(folder, name)
		if err := os.WriteFile(written+".new", data[name], 0o600); err != nil {
			return err
		}
		if err := os.Rename(written+".new", written); err != nil {
			return err
		}
	}
	return nil
}

// everywhere runs on every replica, not only on the leader.
type everywhere func(context.Context) error

func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

func (everywhere) NeedLeaderElection() bool { return false }
