package pki

import "encoding/json"

// Kubeconfig returns a kubeconfig for a client certificate, as JSON, which is also YAML.
func Kubeconfig(cluster, server string, ca []byte, client Pair) []byte {
	type named map[string]any
	b, err := json.MarshalIndent(map[string]any{
		"apiVersion": "v1",
		"kind":       "Config",
		"clusters": []named{{"name": cluster, "cluster": map[string]any{
			"server":                     server,
			"certificate-authority-data": ca, // encoded as base64
		}}},
		"users": []named{{"name": cluster, "user": map[string]any{
			"client-certificate-data": client.Cert,
			"client-key-data":         client.Key,
		}}},
		"contexts":        []named{{"name": cluster, "context": map[string]any{"cluster": cluster, "user": cluster}}},
		"current-context": cluster,
	}, "", "  ")
	if err != nil {
		panic(err) // only strings and bytes
	}
	return append(b, '\n')
}
