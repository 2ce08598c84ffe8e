package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// What the renderings of all reviews together may hold in memory, in bytes, and what
// those of one user may: a review never holds more than the latter.
const (
	maxRenderingBytes        = 56 << 20
	maxRenderingBytesPerUser = 32 << 20
	// renderingBytes is what rendering templates takes if one object is held at a time:
	// templating limits an object to 8 MiB. It also bounds the processors that one user
	// keeps busy: two.
	renderingBytes = 16 << 20
	heldBytes      = 1 << 19 // of the objects of each list that are compared
	// A dry run takes the object, the request and the response with the object.
	dryRunCopies = 4
	// The response also has the managed fields of an object that exists, whose size others
	// choose. It also bounds the dry runs of one user at the same time: 7.
	responseBytes   = metadataBytes
	maxDetailsBytes = 64 << 10 // of discoveryDetails that are parsed
	detailsCopies   = 200      // what parsing YAML takes, in sizes of the text
)

// outline is what the checks need to know of a rendered object. The object itself is
// dropped, and rendered again for a dry run: all objects together may be too large.
type outline struct {
	origin     templating.Origin
	ref        inventory.Ref // without the namespace of the Configuration
	onConflict templating.OnConflict
	// digest is equal for equal objects.
	digest [sha256.Size]byte
	// allocated estimates the memory for the object, in bytes.
	allocated int64
	// refused is set if the object must not be rendered.
	refused []Finding
	// values are those that it was rendered with.
	values *templating.Values
}

func refOf(object templating.Object) inventory.Ref {
	return inventory.RefOfObject(&unstructured.Unstructured{Object: object.Content})
}

func outlineOf(object templating.Object, values *templating.Values) outline {
	return outline{
		origin: object.Origin, ref: refOf(object), onConflict: object.Directives.OnConflict,
		digest: digestOf(object.Content), allocated: object.Allocated, values: values,
	}
}

// digestOf returns a digest of an object's content.
func digestOf(content map[string]any) [sha256.Size]byte {
	encoded, err := json.Marshal(content) // sorts the keys of maps
	if err != nil {
		return sha256.Sum256([]byte(err.Error()))
	}
	return sha256.Sum256(encoded)
}

// render renders the object of an outline again.
func (o outline) render(compiled *templates.Templates) (templating.Object, error) {
	set := compiled.Instance
	if o.origin.Level == templating.ConfigurationLevel {
		set = compiled.Group
	}
	var found *templating.Object
	diagnostics := set.EachOf(o.origin.Index, *o.values, func(object templating.Object) {
		if object.Origin == o.origin && refOf(object) == o.ref {
			found = &object
		}
	})
	if found == nil {
		return templating.Object{}, fmt.Errorf("%s rendered an object, and now it does not (%d errors): please report this as a bug",
			o.origin, len(diagnostics))
	}
	return *found, nil
}

// dryRunBytes returns the memory that a dry run of the object takes.
func (o outline) dryRunBytes() int64 { return responseBytes + dryRunCopies*o.allocated }

// errBusy means that there is neither memory nor a processor for a review in time.
var errBusy = errors.New("the webhook is validating too many other Configurations")

// reserve waits until a user's review may hold so much memory for a rendering.
func (c *Chain) reserve(ctx context.Context, r admissionRequest, bytes int64) (release func(), err error) {
	release, err = c.renderings.acquire(ctx, tenant(r.user), bytes)
	if err != nil {
		return nil, errBusy
	}
	return release, nil
}
