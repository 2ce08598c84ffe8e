// Package sparkplug has the parts of Sparkplug B's payloads that births and commands need.
package sparkplug
