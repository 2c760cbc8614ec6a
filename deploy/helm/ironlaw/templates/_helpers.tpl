{{- define "ironlaw.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "ironlaw.selector" -}}
app.kubernetes.io/name: ironlaw
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "ironlaw.labels" -}}
{{ include "ironlaw.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "ironlaw.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- define "ironlaw.secretKey" -}}
{{ .Values.secretKey.existingSecret | default (printf "%s-secret-key" (include "ironlaw.name" .)) }}
{{- end }}

{{- define "ironlaw.databaseSecret" -}}
{{ .Values.database.existingSecret | default (printf "%s-database" (include "ironlaw.name" .)) }}
{{- end }}

{{- define "ironlaw.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "ironlaw.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Settings of a role of the database, by the name of the role. */}}
{{- define "ironlaw.databaseEnv" -}}
{{- $database := .root.Values.database -}}
{{- $tls := printf "sslmode=%s" $database.sslMode -}}
{{- if $database.authority.secret -}}
{{- $tls = "sslmode=verify-full&sslrootcert=/run/secrets/database-authority/ca.crt" -}}
{{- end -}}
- {name: IRONLAW_MODE, value: tenant}
- name: IRONLAW_DATABASE_URL
  value: {{ printf "postgresql+psycopg://%s@%s:%v/%s?%s" .role $database.host $database.port $database.name $tls | quote }}
- {name: IRONLAW_DATABASE_PASSWORD_FILE, value: /run/secrets/ironlaw/{{ .password }}}
- {name: IRONLAW_SECRET_KEY_FILE, value: /run/secrets/ironlaw/secret-key}
{{- end }}

{{/* Settings of the servers and of the workers. */}}
{{- define "ironlaw.settingsEnv" -}}
{{- $values := .Values -}}
{{- $name := include "ironlaw.name" . -}}
{{- $hosts := list (printf "%s-api" $name) (printf "%s-api.%s" $name .Release.Namespace) (printf "%s-api.%s.svc" $name .Release.Namespace) "localhost" "$(POD_IP)" "[$(POD_IP)]" -}}
{{- $derived := dict -}}
{{- if $values.ingress.enabled -}}
{{- $hosts = prepend $hosts $values.ingress.host -}}
{{- $_ := set $derived "IRONLAW_PUBLIC_URL" (printf "https://%s" $values.ingress.host) -}}
{{- end -}}
{{- $_ := set $derived "IRONLAW_ALLOWED_HOSTS" (join "," $hosts) -}}
{{- if $values.oidcClientSecret.existingSecret -}}
{{- $_ := set $derived "IRONLAW_OIDC_CLIENT_SECRET_FILE" "/run/secrets/ironlaw/oidc-client-secret" -}}
{{- end -}}
{{- if $values.audit.headsClaim -}}
{{- $_ := set $derived "IRONLAW_AUDIT_HEADS_FILE" "/data/audit-heads.jsonl" -}}
{{- end -}}
{{ include "ironlaw.databaseEnv" (dict "root" . "role" $values.database.role "password" "database-password") }}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- range $setting, $value := merge (dict) $values.settings $derived }}
- {name: {{ $setting }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}

{{/* Volumes of a pod; `password` is the key of the one that it needs. */}}
{{- define "ironlaw.volumes" -}}
{{- $values := .root.Values -}}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ include "ironlaw.secretKey" .root }}
          items: [{key: secret-key, path: secret-key}]
      - secret:
          name: {{ include "ironlaw.databaseSecret" .root }}
          items: [{key: {{ .password }}, path: {{ .password }}}]
      {{- if and .serves $values.oidcClientSecret.existingSecret }}
      - secret:
          name: {{ $values.oidcClientSecret.existingSecret }}
          items: [{key: {{ $values.oidcClientSecret.key }}, path: oidc-client-secret}]
      {{- end }}
{{- with $values.database.authority }}
{{- if .secret }}
- name: database-authority
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    items: [{key: {{ .key }}, path: ca.crt}]
{{- end }}
{{- end }}
{{- if .serves }}
- name: data
  {{- if $values.audit.headsClaim }}
  persistentVolumeClaim: {claimName: {{ $values.audit.headsClaim }}}
  {{- else }}
  emptyDir: {sizeLimit: 16Mi}
  {{- end }}
{{- end }}
{{- end }}

{{- define "ironlaw.mounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: secrets, mountPath: /run/secrets/ironlaw, readOnly: true}
{{- if .root.Values.database.authority.secret }}
- {name: database-authority, mountPath: /run/secrets/database-authority, readOnly: true}
{{- end }}
{{- if .serves }}
- {name: data, mountPath: /data}
{{- end }}
{{- end }}

{{/* What the pods of every Deployment share, after their containers. */}}
{{- define "ironlaw.placement" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "ironlaw.selector" . | nindent 8 }}
{{- with .of.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "ironlaw.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 30
securityContext: {{- include "ironlaw.podSecurity" .root | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}
