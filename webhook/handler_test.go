package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"akri.sh/akri/internal/finding"
	"akri.sh/akri/webhook/certs"
)

// ask sends a body to a handler and returns the response.
func ask(t *testing.T, handler http.Handler, url, body string) *admissionv1.AdmissionResponse {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, url, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		t.Errorf("the response is not a review (%v): %d %s", err, recorder.Code, recorder.Body)
		return &admissionv1.AdmissionResponse{}
	}
	return answer.Response
}

func question(object string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",` +
		`"operation":"CREATE","namespace":"ns","userInfo":{"username":"somebody"},"object":` + object + `}}`
}

// The response to any request is a review, and it admits nothing that was not
// reviewed.
func TestOddRequests(t *testing.T) {
	reviewed := false
	handler := handlerFor(reviewFunc(func(context.Context, admissionRequest) []Finding { reviewed = true; return nil }))
	for name, body := range map[string]string{
		"nothing":          "",
		"no UID":           strings.Replace(question("{}"), `"uid"`, `"id"`, 1),
		"no JSON":          "{",
		"no object":        question("null"),
		"a list":           question("[]"),
		"another version":  strings.Replace(question("{}"), "admission.k8s.io/v1", "admission.k8s.io/v9", 1),
		"another kind":     strings.Replace(question("{}"), `"AdmissionReview"`, `"Pod"`, 1),
		"no request":       `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`,
		"deep JSON":        strings.Repeat("[", 1<<20),
		"a wrong type":     question(`{"spec":{"capacity":"x"}}`),
		"a broken list":    question(`{"spec":{"instanceBrokerResources":[1]}}`),
		"more than enough": question(`{"metadata":{"labels":{"k":"` + strings.Repeat("x", maxBody) + `"}},"spec":{}}`),
	} {
		t.Run(name, func(t *testing.T) {
			reviewed = false
			if answer := ask(t, handler, certs.Path, body); answer.Allowed || reviewed {
				t.Errorf("it is reviewed: %t, and the answer is %+v", reviewed, answer)
			}
		})
	}
}

// Requests beyond maxReviews wait for their turn, and are denied when they have waited too
// long: with their UID, so that the API server accepts the response, and for clients that try
// again by themselves.
func TestTooManyAtOnce(t *testing.T) {
	hold, inside := make(chan struct{}), make(chan struct{}, 2*maxReviews)
	handler := handlerFor(reviewFunc(func(ctx context.Context, _ admissionRequest) []Finding {
		inside <- struct{}{}
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return nil
	}))
	var all sync.WaitGroup
	review := func() {
		if answer := ask(t, handler, certs.Path+"?timeout=30s", question("{}")); !answer.Allowed {
			t.Errorf("a request got %+v", answer.Result)
		}
	}
	for range maxReviews {
		all.Go(review)
	}
	for range maxReviews {
		<-inside
	}
	// The response arrives although nobody has read the request.
	server := httptest.NewServer(handler)
	defer server.Close()
	body := question(`{"metadata":{"labels":{"k":"` + strings.Repeat("x", maxBody-1000) + `"}},"spec":{}}`)
	response, err := http.Post(server.URL+"?timeout=1s", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var busy admissionv1.AdmissionReview
	if err := json.NewDecoder(response.Body).Decode(&busy); err != nil {
		t.Fatal(err)
	}
	answer := busy.Response
	if answer.Allowed || answer.Result.Code != http.StatusTooManyRequests || !strings.Contains(answer.Result.Message, "try again") ||
		answer.UID != "u" || answer.Result.Details.RetryAfterSeconds == 0 {
		t.Errorf("one request more got %+v", answer)
	}
	all.Go(review)
	close(hold)
	all.Wait()
}

// The metadata and the status, which others write, are neither read nor counted: an author could
// not change a Configuration any more that somebody else has filled with managed fields.
func TestWhatOthersWriteDoesNotCount(t *testing.T) {
	maps := strings.Repeat(`{"a":0},`, 100_000) + `{}`
	for name, object := range map[string]string{
		"managed fields": `{"metadata":{"name":"cam","uid":"u","managedFields":[{"fieldsV1":{"f:x":[` + maps + `]}}]},"spec":{"capacity":7}}`,
		"labels":         `{"metadata":{"name":"cam","uid":"u","labels":{"l":[` + maps + `]}},"spec":{"capacity":7}}`,
		"status":         `{"metadata":{"name":"cam","uid":"u"},"spec":{"capacity":7},"status":{"resources":[` + maps + `]}}`,
	} {
		reviewed := false
		handler := handlerFor(reviewFunc(func(_ context.Context, r admissionRequest) []Finding {
			c := r.configuration
			reviewed = c.Name == "cam" && c.UID == "u" && c.Spec.Capacity == 7 && len(c.ManagedFields) == 0
			return nil
		}))
		if answer := ask(t, handler, certs.Path, question(object)); !answer.Allowed || !reviewed {
			t.Errorf("%s: reviewed as it is: %t, and the response is %+v", name, reviewed, answer.Result)
		}
	}
}

// If it is not known which templates an update removes, their author must be allowed to
// delete everything. The metadata of the old object is neither read nor counted.
func TestOldObjectThatIsNotRead(t *testing.T) {
	maps := strings.Repeat(`{"a":0},`, 100_000) + `{}`
	for old, unread := range map[string]bool{
		`{"metadata":{"labels":{"l":[` + maps + `]}},"spec":{"serviceAccountName":"maker"}}`: false,
		`{"spec":{"capacity":"x"}}`: true,
	} {
		reviewed := false
		handler := handlerFor(reviewFunc(func(_ context.Context, r admissionRequest) []Finding {
			reviewed = true
			if r.oldUnread != unread || r.old == nil || !unread && r.old.Spec.ServiceAccountName != "maker" {
				t.Errorf("%.60s: the old one is unread: %t, want %t", old, r.oldUnread, unread)
			}
			needs := (&cluster{}).pruneRequirements(r, nil)
			if unread && (len(needs) != 1 || needs[0].right != right{verb: "delete", group: "*", resource: "*", namespace: "ns"}) {
				t.Errorf("%.60s: it requires %v", old, needs)
			}
			return nil
		}))
		update := strings.Replace(question(`{"spec":{}}`), `"operation":"CREATE"`, `"operation":"UPDATE","oldObject":`+old, 1)
		if ask(t, handler, certs.Path, update); !reviewed {
			t.Errorf("%.60s: not reviewed", old)
		}
	}
}

// A panic in one of several concurrent calls reaches the caller.
func TestPanicInParallel(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "three") {
			t.Errorf("recovered %q", got)
		}
	}()
	inParallel(10, func(i int) {
		if i == 3 {
			panic("three")
		}
	})
}

func TestTimeout(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"":              9 * time.Second,
		"?timeout=30s":  29 * time.Second,
		"?timeout=1s":   500 * time.Millisecond,
		"?timeout=-1s":  9 * time.Second,
		"?timeout=soon": 9 * time.Second,
	} {
		var left time.Duration
		handler := handlerFor(reviewFunc(func(ctx context.Context, _ admissionRequest) []Finding {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return nil
		}))
		ask(t, handler, certs.Path+query, question("{}"))
		if left > want || left < want-300*time.Millisecond {
			t.Errorf("%s leaves %v, want %v", query, left, want)
		}
	}
}

func TestResponse(t *testing.T) {
	answer := responseFor([]Finding{
		{Warn, finding.Mistake{Path: "spec.a", Cause: "one"}},
		{Deny, finding.Mistake{Path: "spec.b", Cause: "two\nlines\x1b", Hint: "three"}},
		{Forbid, finding.Mistake{Path: "spec.c", Cause: "four"}},
		{Inconclusive, finding.Mistake{Path: "spec.d", Cause: "five"}},
	})
	if answer.Allowed || answer.Result.Code != http.StatusForbidden || answer.Result.Message != "spec.b: two lines\\x1b; "+
		"three\nspec.c: four" {
		t.Errorf("denied with %+v", answer.Result)
	}
	if len(answer.Warnings) != 2 || answer.Warnings[0] != "spec.a: one" || !strings.HasPrefix(answer.Warnings[1], "spec.d: five (not "+
		"known yet") {
		t.Errorf("warned: %q", answer.Warnings)
	}
	var many []Finding
	for i := range 200 {
		many = append(many, Finding{Deny, finding.Mistake{Path: fmt.Sprintf("spec.x[%d]", i), Cause: strings.Repeat("ä", 5000)}},
			Finding{Warn, finding.Mistake{Cause: strings.Repeat("ä", 5000)}})
	}
	answer = responseFor(many)
	if size := len(answer.Result.Message); size > 64<<10 || !strings.HasSuffix(answer.Result.Message, "and 180 more errors") {
		t.Errorf("a message of %d bytes: …%s", size, answer.Result.Message[size-40:])
	}
	if len(answer.Warnings) != maxWarnings+1 {
		t.Errorf("%d warnings", len(answer.Warnings))
	}
	if !bytes.Equal([]byte(answer.Result.Message), bytes.ToValidUTF8([]byte(answer.Result.Message), nil)) {
		t.Error("a character is split")
	}
}
