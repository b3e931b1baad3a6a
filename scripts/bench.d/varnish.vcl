# Varnish with its built-in rules and storage in memory; it knows one origin.
vcl 4.1;

backend origin {
    .host = "127.0.0.1";
    .port = "@ORIGIN@";
}
