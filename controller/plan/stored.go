package plan

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/templating"
)

// asStored replaces the fields of an object that the API server reads and stores as others:
// stringData of a Secret, and serviceAccount of Pods. With them, the API server would not see
// all changes of the template, and nobody would see what other clients change. Values that
// the API server refuses are left as they are, so that its message fits the template.
func asStored(kind schema.GroupKind, object map[string]any) {
	path, hasPods := templating.PodTemplate(kind)
	template, _ := path.Lookup(object).(map[string]any)
	spec, _ := template["spec"].(map[string]any)
	if former, isText := spec["serviceAccount"].(string); hasPods && isText {
		delete(spec, "serviceAccount")
		if name := spec["serviceAccountName"]; name == nil || name == "" {
			spec["serviceAccountName"] = former
		}
	}
	plain, found, err := unstructured.NestedNullCoercingStringMap(object, "stringData") // null is an empty text
	data, isMap := object["data"].(map[string]any)
	if kind != (schema.GroupKind{Kind: "Secret"}) || !found || err != nil || object["data"] != nil && !isMap {
		return
	}
	if data == nil {
		data = make(map[string]any, len(plain))
	}
	for key, text := range plain {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	object["data"] = data
	delete(object, "stringData")
}
