package certs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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

// Names that config/webhook gives to the objects this package works with.
const (
	// ServiceName is the Service through which the API server reaches the
	// webhook. It is in the namespace of the Secret.
	ServiceName = "akri-webhook"
	// RegistrationName is the ValidatingWebhookConfiguration that receives the
	// CA.
	RegistrationName = "akri-configurations"
)

const (
	// fieldOwner is the name under which the webhook writes its Secret and its registration.
	fieldOwner = "akri-webhook"
	// resync is how long it takes until a failed write is repeated.
	resync = 30 * time.Second
)

// managed counts calls of Manage: each cert-controller in a process needs a name of
// its own, and tests run several.
var managed atomic.Int32

// Manage adds to a manager without leader election the controllers that create and
// renew the certificate, register the path, and keep the state equal to the Secret.
func Manage(mgr manager.Manager, secret types.NamespacedName) (*State, error) {
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionregistrationv1.AddToScheme} {
		if err := add(mgr.GetScheme()); err != nil {
			return nil, fmt.Errorf("register Secrets and webhooks: %w", err)
		}
	}
	restricted := restrictedManager{Manager: mgr, config: restrictLists(mgr.GetConfig(), secret)}
	mounted, err := os.MkdirTemp("/dev/shm", "akri-webhook-") // in memory, and writable in each container
	if err == nil {
		err = os.WriteFile(filepath.Join(mounted, CertFile), nil, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("create a file for cert-controller, which waits for it as if the Secret were mounted: %w", err)
	}
	state := &State{}
	if err := watch(restricted, secret, state); err != nil {
		return nil, err
	}
	err = rotator.AddRotator(restricted, &rotator.CertRotator{
		SecretKey:      secret,
		CertDir:        mounted,
		CAName:         "akri-webhook-ca",
		CAOrganization: "akri.sh",
		DNSName:        fmt.Sprintf("%s.%s.svc", ServiceName, secret.Namespace),
		IsReady:        make(chan struct{}), // polled every few seconds, so State is used instead
		FieldOwner:     fieldOwner,
		Webhooks:       []rotator.WebhookInfo{{Name: RegistrationName, Type: rotator.Validating}},
		// Every replica serves, so every replica ensures that there is a
		// certificate.
		RequireLeaderElection: false,
		ControllerName:        fmt.Sprintf("webhook-certificate-%d", managed.Add(1)),
	})
	if err != nil {
		return nil, fmt.Errorf("create certificates for the webhook: %w", err)
	}
	return state, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		return os.RemoveAll(mounted)
	}))
}

// restrictedManager gives cert-controller a configuration whose list and watch
// requests return only our Secret and our webhook configuration. Otherwise
// cert-controller would need the right to list all of the namespace's Secrets and
// all of the cluster's webhook configurations.
type restrictedManager struct {
	manager.Manager
	config *rest.Config
}

func (m restrictedManager) GetConfig() *rest.Config { return m.config }

// restrictLists adds a field selector to the requests that list or watch Secrets
// or webhook configurations.
func restrictLists(config *rest.Config, secret types.NamespacedName) *rest.Config {
	restricted := rest.CopyConfig(config)
	restricted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return promhttp.RoundTripperFunc(func(request *http.Request) (*http.Response, error) {
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
			selective := request.Clone(request.Context())
			query := selective.URL.Query()
			query.Set("fieldSelector", fields.OneTermEqualSelector("metadata.name", name).String())
			selective.URL.RawQuery = query.Encode()
			return next.RoundTrip(selective)
		})
	})
	return restricted
}

// watch keeps state up to date with the Secret and the webhook configuration, and registers the
// path whenever one of them changes.
func watch(mgr manager.Manager, secret types.NamespacedName, state *State) error {
	informers, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), SyncPeriod: new(resync),
		DefaultNamespaces: map[string]cache.Config{secret.Namespace: {}},
	})
	if err != nil {
		return fmt.Errorf("watch Secret %s: %w", secret, err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		changed := func(object any) {
			var err error
			switch object := object.(type) {
			case *corev1.Secret:
				err = state.updateSecret(object)
			case *admissionregistrationv1.ValidatingWebhookConfiguration:
				state.updateRegistration(object)
			}
			if err = errors.Join(err, state.register(ctx, mgr.GetClient())); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Failed to read the webhook's certificate, or to register its path")
			}
		}
		for _, object := range []client.Object{&corev1.Secret{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}} {
			informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
			if err == nil {
				_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
					AddFunc:    changed,
					UpdateFunc: func(_, current any) { changed(current) },
				})
			}
			if err != nil {
				return fmt.Errorf("watch %T for the webhook's certificate: %w", object, err)
			}
		}
		return informers.Start(ctx)
	}))
}
