package templating

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// asStored replaces the fields of an object that the API server reads and stores as others:
// stringData of a Secret, and serviceAccount of Pods. With them, the API server would not
// see all changes of the template, and nobody would see what other clients change. Values
// that the API server refuses are left as they are, so that its message fits the template.
func (b *objectBuilder) asStored(content map[string]any) bool {
	kind := b.template.kind.GroupKind()
	if isSecret(b.template.kind) {
		return b.encodeStringData(content)
	}
	path, hasPods := podTemplates[kind]
	if hasPods || kind == (schema.GroupKind{Kind: "Pod"}) {
		spec, _ := path.with(Key("spec")).Lookup(content).(map[string]any)
		former, isText := spec["serviceAccount"].(string)
		if name, found := spec["serviceAccountName"]; isText && (!found || name == "" || name == nil) {
			spec["serviceAccountName"] = former
		}
		if isText {
			delete(spec, "serviceAccount")
		}
	}
	return true
}

// encodeStringData moves stringData into data, whose values it overrides.
func (b *objectBuilder) encodeStringData(secret map[string]any) bool {
	plain, isMap := secret["stringData"].(map[string]any)
	data, hasData := secret["data"].(map[string]any)
	if !isMap || !hasData && secret["data"] != nil {
		return true
	}
	for _, value := range plain {
		if _, isText := value.(string); !isText && value != nil {
			return true
		}
	}
	if !hasData {
		data = make(map[string]any, len(plain))
	}
	b.path = append(b.path[:0], Key("stringData"))
	for key, value := range plain {
		text, _ := value.(string) // the API server takes null for an empty text
		if !b.pay(0, int64(base64.StdEncoding.EncodedLen(len(text)))) {
			return false
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	secret["data"] = data
	delete(secret, "stringData")
	return true
}
