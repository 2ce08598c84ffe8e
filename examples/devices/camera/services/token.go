package services

import (
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"sync"
	"time"
)

const (
	// tokenWindow is how far the time of a token may be from the camera's.
	tokenWindow = 5 * time.Minute
	// maxNonces bounds the tokens that are remembered in order to refuse their reuse.
	// Only tokens with the right password are remembered.
	maxNonces = 10_000

	digestType = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordDigest"
)

// usernameToken is the WS-UsernameToken of a request.
type usernameToken struct {
	Username string
	Password struct {
		Type  string `xml:",attr"`
		Value string `xml:",chardata"`
	}
	Nonce   string
	Created string
}

// Users verifies the tokens of one user. Its methods are safe for concurrent use.
type Users struct {
	username, password string
	now                func() time.Time

	mu    sync.Mutex
	used  map[string]time.Time // nonce and time of a token: until when it must be refused
	swept time.Time
}

// NewUsers returns the verifier for a user. Without a user name, everybody is allowed.
func NewUsers(username, password string, now func() time.Time) *Users {
	return &Users{username: username, password: password, now: now, used: map[string]time.Time{}}
}

// open reports whether everybody is allowed.
func (u *Users) open() bool { return u.username == "" }

// verify reports whether a token proves knowledge of the password, and has not been
// used before.
func (u *Users) verify(token *usernameToken) bool {
	if u.open() {
		return true
	}
	if token == nil || strings.TrimSpace(token.Password.Type) != digestType {
		return false // a password in plain text is not accepted
	}
	nonce, err := base64.StdEncoding.DecodeString(strings.TrimSpace(token.Nonce))
	if err != nil || len(nonce) == 0 {
		return false
	}
	text := strings.TrimSpace(token.Created)
	created, err := time.Parse(time.RFC3339, text)
	if err != nil || u.now().Sub(created).Abs() > tokenWindow {
		return false
	}
	sum := sha1.Sum(append(nonce, text+u.password...))
	want := base64.StdEncoding.EncodeToString(sum[:])
	matches := subtle.ConstantTimeCompare([]byte(want), []byte(strings.TrimSpace(token.Password.Value)))
	matches &= subtle.ConstantTimeCompare([]byte(u.username), []byte(strings.TrimSpace(token.Username)))
	return matches == 1 && u.first(string(nonce), created)
}

// first reports whether a token has not been used before, and remembers it until its
// time is outside the window.
func (u *Users) first(nonce string, created time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if now.Sub(u.swept) > tokenWindow || len(u.used) >= maxNonces {
		u.swept = now
		for old, until := range u.used {
			if now.After(until) {
				delete(u.used, old)
			}
		}
	}
	key := created.UTC().Format(time.RFC3339Nano) + " " + nonce
	if _, known := u.used[key]; known || len(u.used) >= maxNonces {
		return false
	}
	u.used[key] = created.Add(tokenWindow)
	return true
}
