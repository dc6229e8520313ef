# The order service, and the lab as a whole, in an image that holds one static binary and nothing
# else: no shell, no libraries, no package manager.

FROM golang:1.26-alpine AS build
WORKDIR /src
# The modules change less often than the code, so they are a layer of their own.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /image/retrylab .
# The lab keeps its databases in a temporary directory, which an empty image does not have.
RUN mkdir -m 1777 /image/tmp

FROM scratch
COPY --from=build /image/ /
# A number, since there is no /etc/passwd that could turn a name into one.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/retrylab"]
