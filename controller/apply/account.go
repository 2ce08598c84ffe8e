package apply

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
)

// maxAccounts bounds how many ServiceAccounts' clients are kept.
const maxAccounts = 256

// Clients holds the controller's own client and one for each ServiceAccount that the
// controller impersonates. It is safe for concurrent use.
type Clients struct {
	config *rest.Config
	own    *Client

	accounts *lru.Cache // of *Client, by types.NamespacedName
}

// NewClients returns Clients for an API server. The controller's own requests go
// through the HTTP client.
func NewClients(config *rest.Config, own *http.Client) (*Clients, error) {
	client, err := NewClient(config, own)
	if err != nil {
		return nil, err
	}
	return &Clients{config: config, own: client, accounts: lru.New(maxAccounts)}, nil
}

// Own returns the client that acts as the controller.
func (c *Clients) Own() *Client { return c.own }

// Len returns how many ServiceAccounts have a client.
func (c *Clients) Len() int { return c.accounts.Len() }

// As returns the client that acts as a ServiceAccount, or as the controller if the
// name is empty.
func (c *Clients) As(account types.NamespacedName) (*Client, error) {
	if account.Name == "" {
		return c.own, nil
	}
	if known, found := c.accounts.Get(account); found {
		return known.(*Client), nil
	}
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: Username(account)}
	made, err := NewClient(config, nil)
	if err != nil {
		return nil, fmt.Errorf("ServiceAccount %s: %w", account, err)
	}
	made.account = account
	c.accounts.Add(account, made) // at worst, two workers create one
	return made, nil
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
