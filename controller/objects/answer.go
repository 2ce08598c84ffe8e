package objects

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// maxUnordered is the length of the text of an object that is decoded without waiting for
// its turn.
const maxUnordered = 64 << 10

// turn belongs to the large object that is being decoded.
var turn sync.Mutex

// Answer is an object as the API server sent it.
type Answer []byte

// Read decodes the object and calls a function with it. Large ones take turns: the function
// must not send requests, nor keep what it is given.
func (a Answer) Read(use func(*unstructured.Unstructured)) error {
	if len(a) > maxUnordered {
		turn.Lock()
		defer turn.Unlock()
	}
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(a, &object.Object); err != nil {
		return fmt.Errorf("read the API server's answer: %w", err)
	}
	use(object)
	return nil
}
