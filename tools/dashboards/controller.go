package main

var controller = dashboard{
	name: "controller", title: "Controller and webhook",
	description: "Whether the controller keeps up, what it does, and how the webhook answers.",
	rows: []row{
		{"Controller", []panel{
			{title: "Replicas", kind: number, width: 4, queries: []query{{`sum(up{job="akri-controller"})`, ""}}},
			{title: "Leaders", kind: number, width: 4, queries: []query{{`sum(leader_election_master_status{job="akri-controller"})`, ""}}},
			{
				title: "Failing watches", kind: number, width: 4, alarming: true,
				description: "Kinds whose objects the controller does not see.",
				queries:     []query{{`max(akri_controller_watches{state="failing"})`, ""}},
			},
			{title: "Queued", kind: number, width: 4, queries: []query{{`sum(workqueue_depth{job="akri-controller"})`, ""}}},
			{
				title: "Longest work in progress", kind: number, width: 8, unit: "s",
				queries: []query{{`max(workqueue_unfinished_work_seconds{job="akri-controller"})`, ""}},
			},
		}},
		{"Work", []panel{
			{
				title: "Reconciles", kind: graph, width: 8, unit: "ops",
				queries: []query{{rate("controller, result", `controller_runtime_reconcile_total{job="akri-controller"}`),
					"{{controller}} {{result}}"}},
			},
			{
				title: "Duration of reconciles", kind: graph, width: 8, unit: "s",
				queries: []query{{quantile(0.99, "controller", `controller_runtime_reconcile_time_seconds_bucket{job="akri-controller"}`),
					"{{controller}} 99 %"}},
			},
			{
				title: "Time in the queue", kind: graph, width: 8, unit: "s",
				queries: []query{{quantile(0.99, "name", `workqueue_queue_duration_seconds_bucket{job="akri-controller"}`), "{{name}} 99 %"}},
			},
			{
				title: "Actions on objects", kind: graph, width: 8, unit: "ops", description: "Nothing, while nothing changes.",
				queries: []query{{rate("action", `akri_controller_actions_total`), "{{action}}"}},
			},
			{
				title: "Failures", kind: graph, width: 8, unit: "ops", description: "Failed attempts by condition reason.",
				queries: []query{{rate("reason", `akri_controller_failures_total`), "{{reason}}"}},
			},
			{
				title: "Requests to the API server", kind: graph, width: 8, unit: "reqps",
				queries: []query{{rate("method, code", `rest_client_requests_total{job="akri-controller"}`), "{{method}} {{code}}"}},
			},
			{
				title: "Objects in the caches", kind: graph, width: 8,
				queries: []query{{`max by (group, resource) (akri_controller_watched_objects)`, "{{resource}} {{group}}"}},
			},
			{
				title: "Entries in memory", kind: graph, width: 8, description: "They return to zero, or to the number of what exists.",
				queries: []query{{`max by (subject) (akri_controller_remembered_entries)`, "{{subject}}"}},
			},
			{
				title: "Memory", kind: graph, width: 8, unit: "bytes",
				queries: []query{{`process_resident_memory_bytes{job=~"akri-controller|akri-webhook"}`, "{{pod}}"}},
			},
			{
				title: "CPU", kind: graph, width: 8, unit: "none",
				queries: []query{{`rate(process_cpu_seconds_total{job=~"akri-controller|akri-webhook"}[$__rate_interval])`, "{{pod}}"}},
			},
		}},
		{"Webhook", []panel{
			{
				title: "Reviews", kind: graph, width: 8, unit: "reqps",
				queries: []query{{rate("pod, code", `controller_runtime_webhook_requests_total{job="akri-webhook"}`), "{{pod}} {{code}}"}},
			},
			{
				title: "Duration of reviews", kind: graph, width: 8, unit: "s", description: "The API server gives up after 10 seconds.",
				queries: []query{
					{quantile(0.5, "", `controller_runtime_webhook_latency_seconds_bucket{job="akri-webhook"}`), "50 %"},
					{quantile(0.99, "", `controller_runtime_webhook_latency_seconds_bucket{job="akri-webhook"}`), "99 %"},
				},
			},
			{
				title: "Rejections", kind: graph, width: 4, unit: "reqps",
				description: "As the API server counts them: no_error is a decision of the webhook, the others mean that it did not respond. " +
					"Empty if Prometheus does not scrape the API server.",
				queries: []query{{rate("error_type", `apiserver_admission_webhook_rejection_count{name="configurations.akri.sh"}`),
					"{{error_type}}"}},
			},
			{
				title: "Certificate expires in", kind: number, width: 4, unit: "s",
				queries: []query{{`min(akri_webhook_certificate_expiration_timestamp_seconds) - time()`, ""}},
			},
		}},
	},
}
