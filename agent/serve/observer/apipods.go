package observer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// apiTimeout bounds a list of the pods: an API server that does not respond must not
// stop the observations.
const apiTimeout = 5 * time.Second

// apiPods reads this node's Pods from the API server, one at a time: others choose how
// large they are.
type apiPods struct {
	client rest.Interface // of the core API
	node   string
}

func (a apiPods) get() *rest.Request {
	return a.client.Get().Resource("pods").Param("fieldSelector", "spec.nodeName="+a.node)
}

// list reads the Pods into a store and returns the resourceVersion to watch from.
// The request names no resourceVersion, so the read is consistent. It is not paged: an
// API server that serves a list from its cache reads pages from etcd, the Pods of all
// nodes for each.
func (a apiPods) list(ctx context.Context, into *store) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	version := ""
	err := into.replaceBy(func() (pods []podInfo, err error) {
		stream, err := a.get().Stream(ctx)
		if err != nil {
			return nil, err
		}
		defer stream.Close()
		pods, version, err = decodeList(stream)
		return pods, err
	})
	if err != nil {
		return "", fmt.Errorf("list the Pods of node %s: %w", a.node, err)
	}
	return version, nil
}

// watch lists and watches the Pods until the watch ends, and returns why it ended.
// It calls synced when the watch has begun.
func (a apiPods) watch(ctx context.Context, into *store, synced func()) error {
	defer into.trust(false)
	version, err := a.list(ctx, into)
	if err != nil {
		return err
	}
	stream, err := a.get().Param("watch", "true").Param("resourceVersion", version).Stream(ctx)
	if err != nil {
		return fmt.Errorf("watch the Pods of node %s: %w", a.node, err)
	}
	defer stream.Close()
	into.trust(true)
	synced()
	for events := json.NewDecoder(stream); ; {
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := events.Decode(&event); err != nil {
			return cmp.Or(ctx.Err(), ignoreEOF(err))
		}
		if event.Type == watch.Error {
			var status metav1.Status
			if err := json.Unmarshal(event.Object, &status); err != nil {
				return err
			}
			return apierrors.FromObject(&status)
		}
		var pod apiPod
		if err := json.Unmarshal(event.Object, &pod); err != nil {
			return err
		}
		read := pod.read()
		into.put(read) // the last status of a deleted one shows whether it terminated
		if event.Type == watch.Deleted {
			into.remove(read.UID, false)
		}
	}
}

// ignoreEOF returns nil if the API server has ended a watch in order.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// apiPod is what is decoded of a Pod.
type apiPod struct {
	Metadata struct {
		UID               string       `json:"uid"`
		Namespace         string       `json:"namespace"`
		Name              string       `json:"name"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Containers     []apiContainer `json:"containers"`
		InitContainers []apiContainer `json:"initContainers"`
	} `json:"spec"`
	Status struct {
		Phase                      string       `json:"phase"`
		StartTime                  *metav1.Time `json:"startTime"`
		ContainerStatuses          []apiStatus  `json:"containerStatuses"`
		InitContainerStatuses      []apiStatus  `json:"initContainerStatuses"`
		EphemeralContainerStatuses []apiStatus  `json:"ephemeralContainerStatuses"`
		// ClaimStatus has the requests that are served by DRA.
		ClaimStatus struct {
			RequestMappings []struct {
				ContainerName string `json:"containerName"`
				ResourceName  string `json:"resourceName"`
			} `json:"requestMappings"`
		} `json:"extendedResourceClaimStatus"`
	} `json:"status"`
}

type apiContainer struct {
	Name          string `json:"name"`
	RestartPolicy string `json:"restartPolicy"`
	Resources     struct {
		Limits   map[string]string `json:"limits"`
		Requests map[string]string `json:"requests"`
	} `json:"resources"`
}

type apiStatus struct {
	State struct {
		Running    *struct{} `json:"running"`
		Terminated *struct{} `json:"terminated"`
	} `json:"state"`
}

// decodeList reads a list of Pods to its end, and returns them with the version of the
// list.
func decodeList(from io.Reader) (pods []podInfo, version string, err error) {
	decoder := json.NewDecoder(from)
	expect := func(want json.Delim) {
		token, tokenErr := decoder.Token()
		if err == nil && tokenErr != nil {
			err = tokenErr
		} else if err == nil && token != want {
			err = fmt.Errorf("the answer is no list: %v instead of %v", token, want)
		}
	}
	complete := false
	for expect('{'); err == nil && decoder.More(); {
		var field json.Token
		if field, err = decoder.Token(); err != nil {
			break
		}
		switch field {
		case "metadata":
			var metadata metav1.ListMeta
			err = decoder.Decode(&metadata)
			version = metadata.ResourceVersion
		case "items":
			for expect('['); err == nil && decoder.More(); {
				var pod apiPod
				if err = decoder.Decode(&pod); err == nil {
					pods = append(pods, pod.read())
				}
			}
			expect(']')
			complete = true
		default:
			err = decoder.Decode(&json.RawMessage{})
		}
	}
	if expect('}'); err == nil && (version == "" || !complete) {
		err = errors.New("the answer is no list: it has no version or no items")
	}
	return pods, version, err
}

// read returns what the observer reads of a Pod.
func (p *apiPod) read() podInfo {
	f := podFacts{
		uid: p.Metadata.UID, namespace: p.Metadata.Namespace, name: p.Metadata.Name,
		deleting: p.Metadata.DeletionTimestamp != nil, waiting: p.Status.StartTime == nil, phase: p.Status.Phase,
		claimed:    map[request]bool{},
		containers: readContainers(p.Spec.Containers), inits: readContainers(p.Spec.InitContainers),
		statuses: readStates(p.Status.ContainerStatuses),
		others:   append(readStates(p.Status.InitContainerStatuses), readStates(p.Status.EphemeralContainerStatuses)...),
	}
	for _, mapping := range p.Status.ClaimStatus.RequestMappings {
		f.claimed[request{mapping.ContainerName, mapping.ResourceName}] = true
	}
	return f.digest()
}

func readContainers(list []apiContainer) []container {
	var containers []container
	for _, c := range list {
		containers = append(containers, container{
			name: c.Name, limits: c.Resources.Limits, requests: c.Resources.Requests, sidecar: c.RestartPolicy == "Always",
		})
	}
	return containers
}

func readStates(list []apiStatus) []containerState {
	var states []containerState
	for _, status := range list {
		s := waiting
		if status.State.Terminated != nil {
			s = terminated
		}
		if status.State.Running != nil {
			s = running
		}
		states = append(states, s)
	}
	return states
}
