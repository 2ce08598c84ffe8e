package objects

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// As returns a client that acts as a user, on the same connections.
func (c *Client) As(user string) *Client { return &Client{api: impersonating{c.api, user}} }

// impersonating sends all requests as a user.
type impersonating struct {
	rest.Interface
	user string
}

func (i impersonating) as(request *rest.Request) *rest.Request {
	return request.SetHeader(transport.ImpersonateUserHeader, i.user)
}

func (i impersonating) Verb(verb string) *rest.Request { return i.as(i.Interface.Verb(verb)) }

func (i impersonating) Get() *rest.Request { return i.as(i.Interface.Get()) }

func (i impersonating) Post() *rest.Request { return i.as(i.Interface.Post()) }

func (i impersonating) Put() *rest.Request { return i.as(i.Interface.Put()) }

func (i impersonating) Patch(kind types.PatchType) *rest.Request {
	return i.as(i.Interface.Patch(kind))
}

func (i impersonating) Delete() *rest.Request { return i.as(i.Interface.Delete()) }
