import LarderTransfer
import Synchronization

extension URLSession {
    /// The tasks that run or are suspended, by kind; see `getTasksWithCompletionHandler`.
    public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async { self.tasksByKind() }
    }

    /// All tasks that run or are suspended; see `getAllTasks`.
    public var allTasks: [URLSessionTask] {
        get async { self.outstandingTasks() }
    }

    func outstandingTasks() -> [URLSessionTask] {
        let tasks = self.guarded.withLock { $0.tasks.entries.map(\.value) }
        return tasks.filter { $0.isOutstanding }
            .sorted { $0.taskIdentifier < $1.taskIdentifier }
    }

    func tasksByKind() -> (
        [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
    ) {
        var data: [URLSessionDataTask] = []
        var uploads: [URLSessionUploadTask] = []
        var downloads: [URLSessionDownloadTask] = []
        for task in self.outstandingTasks() {
            switch task {
            case let task as URLSessionUploadTask: uploads.append(task)
            case let task as URLSessionDataTask: data.append(task)
            case let task as URLSessionDownloadTask: downloads.append(task)
            default: break
            }
        }
        return (data, uploads, downloads)
    }
}
