package apitest

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	v0 "akri.sh/akri/api/v0"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

func TestKindsAreServed(t *testing.T) {
	config := Start(t)
	namespace := Namespace(t, config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(v0.InstanceResource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 0 {
		t.Errorf("got %d Instances in a new namespace, want none", len(list.Items))
	}
}
