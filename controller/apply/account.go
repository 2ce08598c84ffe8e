package apply

import "k8s.io/apimachinery/pkg/types"

// As returns the client that acts as a ServiceAccount, or the client itself if the name is
// empty.
func (c *Client) As(account types.NamespacedName) *Client {
	if account.Name == "" {
		return c
	}
	return &Client{api: c.api.As(Username(account)), account: account}
}

// Username returns the API server's name for a ServiceAccount.
func Username(account types.NamespacedName) string {
	return "system:serviceaccount:" + account.Namespace + ":" + account.Name
}

// Groups returns the groups of a ServiceAccount.
func Groups(account types.NamespacedName) []string {
	const all = "system:serviceaccounts"
	return []string{all, all + ":" + account.Namespace, "system:authenticated"}
}
