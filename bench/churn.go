package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// statusWrites is how many changes of a status churn makes.
const statusWrites = 100

// churn counts the requests caused by status changes that the controller can ignore.
func (b *bench) churn(ctx context.Context) (err error) {
	count := b.last()
	r, err := b.settle(ctx, count, controllerName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	mark := r.log.mark()
	for i := range statusWrites {
		patch := fmt.Sprintf(`{"status":{"collisionCount":%d}}`, i+1)
		_, err := r.admin.Resource(deployments).Namespace(namespace).
			Patch(ctx, deviceName(i%count), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("write a status: %w", err)
		}
	}
	requests, err := r.log.awaitQuiet(ctx, mark, controllerName, reportDelay)
	if err != nil {
		return err
	}
	b.add(figure{
		What:     fmt.Sprintf("requests caused by %d status writes on Deployments", statusWrites),
		Measured: fmt.Sprint(len(requests)),
		Bare:     "0",
		Limit:    "0", Met: len(requests) == 0,
	})
	return nil
}
