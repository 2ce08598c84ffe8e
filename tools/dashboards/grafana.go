package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// dashboard is a page of panels.
type dashboard struct {
	name, title, description string
	// variables are the labels to filter the page by. Each is a variable $LABEL.
	variables []variable
	rows      []row
}

// variable offers the values of a label of a metric.
type variable struct{ label, metric string }

// row is a titled group of panels.
type row struct {
	title  string
	panels []panel
}

// panel shows queries.
type panel struct {
	title, description string
	kind               kind
	unit               string // one of Grafana's; empty: a plain number
	width              int    // of 24 columns
	alarming           bool   // any value above 0 is shown in red
	queries            []query
}

// kind is a type of panels.
type kind string

const (
	number kind = "stat"
	graph  kind = "timeseries"
	table  kind = "table"
)

// query is an expression, and how its series are called.
type query struct{ expr, legend string }

// rate returns an expression for how fast counters grow per second, summed by labels.
func rate(by, counters string) string {
	return "sum by (" + by + ") (rate(" + counters + "[$__rate_interval]))"
}

// quantile returns an expression for a quantile of histograms, by a label unless it is
// empty.
func quantile(q float64, by, buckets string) string {
	if by != "" {
		by += ", "
	}
	return fmt.Sprintf("histogram_quantile(%v, %s)", q, rate(by+"le", buckets))
}

// object is a JSON object.
type object = map[string]any

const (
	columns      = 24
	numberHeight = 4
	panelHeight  = 8
	// schemaVersion is that of Grafana 10, which later versions migrate.
	schemaVersion = 39
)

var source = object{"type": "prometheus", "uid": "${datasource}"}

// marshal returns the dashboard as Grafana reads it.
func (d dashboard) marshal() ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"uid": "akri-" + d.name, "title": "Akri / " + d.title, "description": d.description,
		"tags": []string{"akri"}, "schemaVersion": schemaVersion, "version": 1, "editable": true,
		"refresh": "30s", "time": object{"from": "now-3h", "to": "now"}, "timezone": "browser", "graphTooltip": 1,
		"templating": object{"list": d.templating()},
		"links": []object{{
			"type": "dashboards", "title": "Akri", "tags": []string{"akri"}, "asDropdown": false, "keepTime": true, "includeVars": true,
		}},
		"annotations": object{"list": []object{}},
		"panels":      d.panels(),
	})
	return buffer.Bytes(), err
}

// templating returns the variables: the data source, and the labels.
func (d dashboard) templating() []object {
	list := []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0, "refresh": 1}}
	for _, v := range d.variables {
		list = append(list, object{
			"name": v.label, "label": v.label, "type": "query", "datasource": source, "hide": 0,
			"query":      object{"query": "label_values(" + v.metric + ", " + v.label + ")", "refId": v.label},
			"definition": "label_values(" + v.metric + ", " + v.label + ")",
			"includeAll": true, "allValue": ".*", "multi": true, "refresh": 2, "sort": 1,
			"current": object{"text": "All", "value": "$__all"},
		})
	}
	return list
}

// panels lays the panels out from left to right and from top to bottom.
func (d dashboard) panels() []object {
	var all []object
	y := 0
	for _, r := range d.rows {
		all = append(all, object{
			"id": len(all) + 1, "type": "row", "title": r.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": columns, "h": 1},
		})
		y++
		x, height := 0, 0
		for _, p := range r.panels {
			if x+p.width > columns {
				x, y, height = 0, y+height, 0
			}
			all = append(all, p.object(len(all)+1, object{"x": x, "y": y, "w": p.width, "h": p.height()}))
			x, height = x+p.width, max(height, p.height())
		}
		y += height
	}
	return all
}

func (p panel) height() int {
	if p.kind == number {
		return numberHeight
	}
	return panelHeight
}

func (p panel) object(id int, position object) object {
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend,
			"instant": p.kind != graph, "range": p.kind == graph, "format": p.format(),
		})
	}
	steps := []object{{"color": "green", "value": nil}}
	if p.alarming {
		steps = append(steps, object{"color": "red", "value": 1e-9})
	}
	defaults := object{
		"unit": p.unit, "min": 0, "thresholds": object{"mode": "absolute", "steps": steps},
		"color": object{"mode": "palette-classic"},
	}
	if p.kind == number {
		defaults["color"] = object{"mode": "thresholds"}
		defaults["noValue"] = "0"
	}
	if p.kind == graph {
		defaults["custom"] = object{"fillOpacity": 10, "showPoints": "never", "spanNulls": false}
	}
	return object{
		"id": id, "type": string(p.kind), "title": p.title, "description": p.description, "datasource": source,
		"gridPos": position, "targets": targets, "fieldConfig": object{"defaults": defaults, "overrides": []object{}},
		"options": p.options(), "transformations": p.transformations(),
	}
}

func (p panel) format() string {
	if p.kind == table {
		return "table"
	}
	return "time_series"
}

func (p panel) options() object {
	switch p.kind {
	case number:
		return object{
			"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
			"colorMode":     "value", "graphMode": "none",
		}
	case graph:
		return object{
			"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		}
	}
	return object{"showHeader": true, "cellHeight": "sm"}
}

// transformations hides the columns of a table that say nothing.
func (p panel) transformations() []object {
	if p.kind != table {
		return []object{}
	}
	hidden := object{"Time": true}
	if !slices.ContainsFunc(p.queries, func(q query) bool { return q.legend == "Value" }) {
		hidden["Value"] = true
	}
	return []object{{"id": "organize", "options": object{"excludeByName": hidden}}}
}
