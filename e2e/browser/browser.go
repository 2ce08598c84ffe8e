package browser

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"akri.sh/akri/e2e/peers"
)

// program is the browser's name, and that of its Debian package.
const program = "chromium-headless-shell"

// Page is a web page in a browser of its own.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	errors []string
}

// Open starts a browser whose window has a size in pixels, and opens a page. The browser
// ends with the test.
func Open(t testing.TB, url string, width, height int) *Page {
	t.Helper()
	path, environment := find(t)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.Env(environment...), chromedp.WindowSize(width, height),
		chromedp.NoSandbox, // which root cannot use; the pages are this repository's
		chromedp.UserDataDir(t.TempDir()),
	)
	ctx, end := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, cancel := chromedp.NewContext(ctx)
	p := &Page{t: t, ctx: ctx}
	messages := chromedp.Console(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for message, err := range messages {
			p.record(message, err)
		}
	})
	t.Cleanup(func() {
		cancel()
		end()
		reading.Wait()
	})
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	return p
}

// find returns the browser, and the environment that it needs in addition.
func find(t testing.TB) (path string, environment []string) {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	root := peers.WithDependencies(t, program)
	libraries := peers.Libraries(root)
	private, _ := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-gnu", "pulseaudio")) // the pattern is valid
	libraries[0] += ":" + strings.Join(private, ":")
	return filepath.Join(root, "usr", "lib", "chromium", program), libraries
}

// record keeps a message if it is an error.
func (p *Page) record(message chromedp.ConsoleMessage, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		p.errors = append(p.errors, err.Error())
	case message.IsException() || message.Type == chromedp.ConsoleError || message.Type == "assert":
		p.errors = append(p.errors, message.URL+": "+message.Text)
	}
}

// Errors returns the errors in the console: what scripts report, exceptions, and requests
// that failed.
func (p *Page) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.errors)
}

// AssertNoErrors fails the test if there were errors in the console.
func (p *Page) AssertNoErrors() {
	p.t.Helper()
	if got := p.Errors(); len(got) > 0 {
		p.t.Errorf("the console has errors:\n%s", strings.Join(got, "\n"))
	}
}

// Evaluate returns the value of an expression in the page.
func Evaluate[T any](p *Page, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return value
}

// Screenshot returns what the window shows, as a PNG.
func (p *Page) Screenshot() []byte {
	p.t.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatalf("take a screenshot: %v", err)
	}
	return picture
}
