# A Synapse of our own; to be sourced after need.sh.
#
#   synapse_start                 # installs it below target/ if need be, starts it, exports POINTSMAN_TEST_MATRIX_…
#   synapse_end                   # ends it by its process id and removes its directory; nothing if none was started

# The version the tests were written with.
synapse_version=${POINTSMAN_TEST_SYNAPSE_VERSION:-1.163.2}
synapse_pid=
synapse_dir=

# Python that can make a private environment.
synapse_install() {
    local place=$PWD/target/synapse/$synapse_version
    synapse_python=$place/bin/python
    if [ -x "$synapse_python" ] && "$synapse_python" -c 'import synapse' 2>/dev/null; then
        return 0
    fi
    if ! command -v python3 >/dev/null 2>&1 || ! python3 -m venv "$place" >&2; then
        need_say "Synapse needs python3 with venv"
        return 1
    fi
    need_say "installing matrix-synapse $synapse_version below target/synapse"
    "$place/bin/pip" install --quiet --disable-pip-version-check "matrix-synapse==$synapse_version" >&2
}

# A free port of loopback.
synapse_port() {
    "$synapse_python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

synapse_start() {
    synapse_install || return 1
    synapse_dir=$(mktemp -d)
    trap synapse_end EXIT
    local port secret
    port=$(synapse_port)
    secret=$("$synapse_python" -c 'import secrets; print(secrets.token_hex(24))')
    # Nobody outside is talked to: no federation, no key servers, no telemetry. Limits on requests stay on, so that the
    # tests meet them; they are only wide enough for four stories in a few minutes.
    cat >"$synapse_dir/homeserver.yaml" <<YAML
server_name: lab.invalid
pid_file: $synapse_dir/synapse.pid
report_stats: false
signing_key_path: $synapse_dir/signing.key
media_store_path: $synapse_dir/media
registration_shared_secret: $secret
trusted_key_servers: []
suppress_key_server_warning: true
federation_domain_whitelist: []
enable_registration: false
log_config: $synapse_dir/log.yaml
database: {name: sqlite3, args: {database: $synapse_dir/homeserver.db}}
rc_message: {per_second: 5, burst_count: 20}
listeners:
  - {port: $port, type: http, tls: false, bind_addresses: ["127.0.0.1"], resources: [{names: [client]}]}
YAML
    cat >"$synapse_dir/log.yaml" <<YAML
version: 1
formatters: {line: {format: "%(asctime)s %(levelname)s %(name)s %(message)s"}}
handlers: {file: {class: logging.FileHandler, formatter: line, filename: $synapse_dir/synapse.log}}
root: {level: WARNING, handlers: [file]}
YAML
    "$synapse_python" -m synapse.app.homeserver --config-path "$synapse_dir/homeserver.yaml" --generate-keys >&2 || return 1
    "$synapse_python" -m synapse.app.homeserver --config-path "$synapse_dir/homeserver.yaml" >"$synapse_dir/out" 2>&1 &
    synapse_pid=$!
    # Accounts are made through the same door as an administrator's tool does; this also waits until it is up.
    local accounts
    if ! accounts=$("$synapse_python" - "http://127.0.0.1:$port" "$secret" <<'PYTHON'
import hashlib, hmac, json, sys, time, urllib.error, urllib.request

base, secret = sys.argv[1:]

def call(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)

deadline = time.monotonic() + 60
while True:
    try:
        call("/_matrix/client/versions")
        break
    except (urllib.error.URLError, ConnectionError):
        if time.monotonic() > deadline:
            sys.exit("it did not come up within 60 s")
        time.sleep(0.2)
for name in ("bot", "ann", "eve"):
    nonce = call("/_synapse/admin/v1/register")["nonce"]
    text = "\0".join((nonce, name, "pw-" + secret, "notadmin"))
    mac = hmac.new(secret.encode(), text.encode(), hashlib.sha1).hexdigest()
    made = call("/_synapse/admin/v1/register", {
        "nonce": nonce, "username": name, "password": "pw-" + secret, "admin": False, "mac": mac})
    print(made["access_token"])
PYTHON
    ); then
        need_say "Synapse did not start: $(tail -n 3 "$synapse_dir/out" "$synapse_dir/synapse.log" 2>/dev/null | tr '\n' ' ')"
        synapse_end
        return 1
    fi
    { read -r POINTSMAN_TEST_MATRIX_BOT_TOKEN; read -r POINTSMAN_TEST_MATRIX_ANN_TOKEN; read -r POINTSMAN_TEST_MATRIX_EVE_TOKEN; } <<<"$accounts"
    POINTSMAN_TEST_MATRIX_URL=http://127.0.0.1:$port
    export POINTSMAN_TEST_MATRIX_URL POINTSMAN_TEST_MATRIX_BOT_TOKEN POINTSMAN_TEST_MATRIX_ANN_TOKEN POINTSMAN_TEST_MATRIX_EVE_TOKEN
    need_say "Synapse $synapse_version runs on $POINTSMAN_TEST_MATRIX_URL as process $synapse_pid"
}

synapse_end() {
    if [ -n "$synapse_pid" ]; then
        kill "$synapse_pid" 2>/dev/null || true
        wait "$synapse_pid" 2>/dev/null || true
        synapse_pid=
    fi
    if [ -n "$synapse_dir" ]; then
        rm -rf -- "$synapse_dir"
        synapse_dir=
    fi
}
