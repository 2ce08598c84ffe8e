package pki

import "encoding/json"

// Kubeconfig renders a kubeconfig for a client certificate. JSON is YAML, and
// needs no quoting rules.
func Kubeconfig(cluster, server string, ca []byte, client Pair) []byte {
	type named map[string]any
	b, err := json.MarshalIndent(map[string]any{
		"apiVersion": "v1",
		"kind":       "Config",
		"clusters": []named{{"name": cluster, "cluster": map[string]any{
			"server":                     server,
			"certificate-authority-data": ca, // bytes become base64, as the format wants
		}}},
		"users": []named{{"name": cluster, "user": map[string]any{
			"client-certificate-data": client.Cert,
			"client-key-data":         client.Key,
		}}},
		"contexts":        []named{{"name": cluster, "context": map[string]any{"cluster": cluster, "user": cluster}}},
		"current-context": cluster,
	}, "", "  ")
	if err != nil {
		panic(err) // strings and bytes only
	}
	return append(b, '\n')
}
