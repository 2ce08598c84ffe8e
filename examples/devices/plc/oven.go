package main

import (
	"fmt"
	"math"
	"sync"
	"time"
)

const (
	// inertia is the time in which the difference to the setpoint decreases to a third.
	inertia = 60 * time.Second
	// bakingTime is the time for a piece while the oven is hot.
	bakingTime = 10 * time.Second
	// hotEnough is how close to the setpoint the oven bakes, in degrees.
	hotEnough = 5
	// ambient is the temperature around the oven, and maxTemperature the highest setpoint.
	ambient, maxTemperature = 20.0, 400.0
)

// oven is a simulated oven. It is safe for concurrent use.
type oven struct {
	speed float64

	mu                    sync.Mutex
	updated               time.Time
	temperature, setpoint float64
	baked                 float64
}

// reading is the state of an oven.
type reading struct {
	temperature, setpoint, power float64
	pieces                       int64
}

func newOven(temperature, setpoint, speed float64, now time.Time) *oven {
	return &oven{temperature: temperature, setpoint: setpoint, speed: speed, updated: now}
}

// read returns the state at a time.
func (o *oven) read(now time.Time) reading {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.advance(now)
	power := (o.temperature - ambient) / (maxTemperature - ambient) // to keep the temperature
	power += (o.setpoint - o.temperature) / 100
	return reading{o.temperature, o.setpoint, min(max(power, 0), 1), int64(o.baked)}
}

// set changes the setpoint.
func (o *oven) set(degrees float64, now time.Time) error {
	if math.IsNaN(degrees) || degrees < ambient || degrees > maxTemperature {
		return fmt.Errorf("%v degrees are out of range: use %v to %v", degrees, ambient, maxTemperature)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.advance(now)
	o.setpoint = degrees
	return nil
}

// advance computes the state at a time. mu must be locked.
func (o *oven) advance(now time.Time) {
	elapsed := max(now.Sub(o.updated).Seconds(), 0) * o.speed
	o.updated = now
	difference := o.setpoint - o.temperature
	// The difference decreases exponentially; the oven bakes from the time when it is small.
	cold := 0.0
	if math.Abs(difference) > hotEnough {
		cold = inertia.Seconds() * math.Log(math.Abs(difference)/hotEnough)
	}
	o.baked += max(elapsed-cold, 0) / bakingTime.Seconds()
	o.temperature = o.setpoint - difference*math.Exp(-elapsed/inertia.Seconds())
}
